// A subscription to the embedded log: pages from the position last delivered, then a page for each commit noticed.
// No event can be passed over: positions are given under the one write lock, so none appears below a visible one.

import { sleep } from '#src/lib/time.ts';
import type { AbortSignalLike, EventFilter, LiveMessage } from '#src/ports/event-log.ts';
import { nextTurn } from './busy-retry.ts';
import type { CommitWatch } from './commit-watch.ts';
import { type LogReader, PAGE_ROWS, type Page, positionNumber } from './read.ts';

export type SubscribeDependencies = {
  readonly reader: LogReader;
  readonly watch: CommitWatch;
  /** Throws where the log is closed: a subscription does not end in silence. */
  readonly assertOpen: () => void;
};

export type Subscription = {
  readonly after: string | null;
  readonly filter?: EventFilter;
  readonly signal: AbortSignalLike;
};

const LONGEST_PAUSE_MS = 1000;

export async function* sqliteSubscription(
  { reader, watch, assertOpen }: SubscribeDependencies,
  { after, filter, signal }: Subscription,
): AsyncGenerator<LiveMessage, void> {
  let cursor = positionNumber(after);
  let announced = false;
  for (let failures = 0; !signal.aborted; ) {
    assertOpen();
    const found = look(cursor);
    if (found === null) {
      await sleep(Math.min(LONGEST_PAUSE_MS, 2 ** failures++), signal);
      continue;
    }
    failures = 0;
    for (const event of found.page.events) {
      if (signal.aborted) return;
      yield { kind: 'event', event };
    }
    cursor = found.page.cursor;
    if (signal.aborted) return;
    if (!found.page.end) {
      await nextTurn();
      continue;
    }
    if (!announced) {
      announced = true;
      yield { kind: 'caught_up' };
    }
    await watch.changed(found.seen, signal);
  }

  /** null: a lock or a fault. Either may pass, and the cursor stands where it stood. */
  function look(from: number): { seen: number; page: Page } | null {
    try {
      const seen = watch.count();
      return { seen, page: reader.page(from, PAGE_ROWS, filter) };
    } catch {
      return null;
    }
  }
}
