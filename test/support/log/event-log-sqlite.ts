// Embedded logs for tests: a directory of their own, gone afterwards.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import type { EventLogHarness } from '#test/support/contract/event-log-harness.ts';

export type LogDirectory = { readonly file: string; remove(): void };

export function logDirectory(): LogDirectory {
  const directory = mkdtempSync(join(tmpdir(), 'event-log-'));
  return {
    file: join(directory, 'data', 'events.db'),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

export const sqliteHarness: EventLogHarness = {
  spoils: true,
  together: true,
  async open() {
    const { file, remove } = logDirectory();
    const open = () => sqliteEventLog({ file });
    const spoil = async ({ position }: RecordedEvent) => {
      const foreign = new DatabaseSync(file);
      foreign.exec(`
        DROP TRIGGER events_are_not_updated;
        UPDATE events SET data = replace(data, '"', '!') WHERE position = ${Number(position)}`);
      foreign.close();
    };
    return { log: await open(), again: open, spoil, dispose: async () => remove() };
  },
};
