// The parameters of the contract suite, and the log of each test.
import { test } from 'node:test';
import type { EventLog, RecordedEvent } from '#src/ports/event-log.ts';
import type { EventScan } from '#src/ports/event-scan.ts';

export type EventLogHarness = {
  /** false: what is stored cannot be changed from outside. There are then no tests that damage an event. */
  readonly spoils: boolean;
  /** Whether it stores appends to several streams together. */
  readonly together: boolean;
  /** A new or a shared log: the suite uses new stream names and ids. */
  open(): Promise<OpenedLog>;
};

export type OpenedLog = {
  readonly log: EventLog & EventScan;
  /** Another handle on the same storage, like that of another process. The suite closes it. */
  again(): Promise<EventLog>;
  /** Changes the stored data of the event, as a failing disk does. */
  spoil(event: RecordedEvent): Promise<void>;
  /** Frees the resources of `open`, after `log` is closed. */
  dispose(): Promise<void>;
};

/** `spoils`: the test calls `spoil`. */
export type LogTest = (
  title: string,
  body: (opened: OpenedLog) => Promise<void>,
  needs?: { readonly spoils: true },
) => void;

/** A test with a log that is opened before it and freed after it, also if the test fails. */
export function logTest(name: string, harness: EventLogHarness): LogTest {
  return (title, body, needs) => {
    if (needs?.spoils && !harness.spoils) return;
    test(`${name}: ${title}`, async () => {
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
