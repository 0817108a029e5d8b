// A subscription to the server: pages from the position last delivered, then a page for each notice. The server's own
// subscriptions end on any fault, are dropped when a reader is slow, and hang with a frozen server: here they only wake.

import { growingPause, sleep, unlessAborted } from '#src/lib/time.ts';
import type { AbortSignalLike, EventFilter, LiveMessage } from '#src/ports/event-log.ts';
import type { AppendWatch } from './append-watch.ts';
import { type LogReader, PAGE_EVENTS, type Page } from './read.ts';

export type SubscribeDependencies = {
  readonly reader: LogReader;
  readonly watch: AppendWatch;
  /** Aborts when the log is closed. */
  readonly closing: AbortSignalLike;
  /** Throws where the log is closed: a subscription does not end in silence. */
  readonly assertOpen: () => void;
};

export type Subscription = {
  readonly after: string | null;
  readonly filter?: EventFilter;
  readonly signal: AbortSignalLike;
};

export async function* eventStoreSubscription(
  { reader, watch, closing, assertOpen }: SubscribeDependencies,
  { after, filter, signal }: Subscription,
): AsyncGenerator<LiveMessage, void> {
  let cursor = after;
  let announced = false;
  let noticed = true;
  for (let failures = 0; !signal.aborted; ) {
    assertOpen();
    const seen = watch.count();
    const page = await unlessAborted(look(cursor), signal);
    if (signal.aborted) return;
    if (page === null) {
      await sleep(growingPause(failures++), signal, closing);
      continue;
    }
    if (failures > 0) yield { kind: 'resumed' };
    failures = 0;
    if (!noticed && page.cursor !== cursor) watch.deaf();
    for (const event of page.events) {
      if (signal.aborted) return;
      yield { kind: 'event', event };
    }
    cursor = page.cursor;
    noticed = true;
    if (!page.end) continue;
    if (signal.aborted) return;
    if (!announced) {
      announced = true;
      yield { kind: 'caught_up' };
    }
    noticed = await watch.changed(seen, signal);
  }

  /** null: the log is away. That passes, and the cursor stands where it stood. */
  function look(from: string | null): Promise<Page | null> {
    return reader.page(from, PAGE_EVENTS, filter).catch(() => null);
  }
}
