// What an adapter's test hands to the contract suite, and how a test gets its log.
import { test } from 'node:test';
import type { EventLog } from '#src/ports/event-log.ts';

export type EventLogHarness = {
  /** false: the storage ends with its one handle. The tests that need a further one then show as skipped. */
  readonly reopens: boolean;
  /** A log of its own, or one shared with others: the suite uses fresh stream names and ids either way. */
  open(): Promise<OpenedLog>;
};

export type OpenedLog = {
  readonly log: EventLog;
  /** A further handle on the same storage, as another process has one, or the next run. The suite closes it. */
  again(): Promise<EventLog>;
  /** Frees what `open` took; `log` is closed by then. */
  dispose(): Promise<void>;
};

/** `reopens`: the test calls `again`. */
export type LogTest = (
  title: string,
  body: (opened: OpenedLog) => Promise<void>,
  needs?: { readonly reopens: true },
) => void;

/** A test with a log that is opened before and freed after, however the test ends. */
export function logTest(name: string, harness: EventLogHarness): LogTest {
  return (title, body, needs) => {
    const skip = needs !== undefined && !harness.reopens;
    test(`${name}: ${title}`, { timeout: 60_000, skip }, async () => {
      const opened = await harness.open();
      try {
        await body(opened);
      } finally {
        await opened.log.close();
        await opened.dispose();
      }
    });
  };
}

/** Runs with a further handle, which is closed after. */
export async function withAgain(opened: OpenedLog, body: (log: EventLog) => Promise<void>): Promise<void> {
  const log = await opened.again();
  try {
    await body(log);
  } finally {
    await log.close();
  }
}
