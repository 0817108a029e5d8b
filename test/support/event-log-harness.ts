// The parameters of the contract suite, and the log of each test.
import { test } from 'node:test';
import type { EventLog } from '#src/ports/event-log.ts';

export type EventLogHarness = {
  /** false: the storage ends with its one handle. Tests that need another handle are then skipped. */
  readonly reopens: boolean;
  /** A new or a shared log: the suite uses new stream names and ids. */
  open(): Promise<OpenedLog>;
};

export type OpenedLog = {
  readonly log: EventLog;
  /** Another handle on the same storage, like that of another process. The suite closes it. */
  again(): Promise<EventLog>;
  /** Frees the resources of `open`, after `log` is closed. */
  dispose(): Promise<void>;
};

/** `reopens`: the test calls `again`. */
export type LogTest = (
  title: string,
  body: (opened: OpenedLog) => Promise<void>,
  needs?: { readonly reopens: true },
) => void;

/** A test with a log that is opened before it and freed after it, also if the test fails. */
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
