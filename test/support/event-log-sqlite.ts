// Embedded logs for tests: a directory of their own, gone afterwards.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import type { EventLogHarness } from './event-log-harness.ts';

export type LogDirectory = { readonly file: string; remove(): void };

export function logDirectory(): LogDirectory {
  const directory = mkdtempSync(join(tmpdir(), 'event-log-'));
  return {
    file: join(directory, 'data', 'events.db'),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

export const sqliteHarness: EventLogHarness = {
  reopens: true,
  async open() {
    const { file, remove } = logDirectory();
    const open = () => sqliteEventLog({ file });
    return { log: await open(), again: open, dispose: async () => remove() };
  },
};
