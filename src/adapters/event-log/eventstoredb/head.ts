// The head of the log: the last event that a subscriber is shown. A server keeps events of its own in the same order
// (statistics, metadata, links), thousands after ours where nothing happens, so what was searched is remembered.
import type { Placed, ReadFrom } from './messages.ts';
import { type LogReader, PAGE_EVENTS } from './read.ts';

/** The last events are most often ours. */
const GLANCE = 4;

/** Nothing at or before `upTo` is shown but what ends with `head`. */
type Searched = { readonly upTo: string; readonly head: string | null };

/** Position of the last event that is shown, as the log stands at the call or later; null where there is none. */
export function headSearch(before: LogReader['before']): () => Promise<string | null> {
  let searched: Searched | null = null;
  let walking: Promise<void> | null = null;

  /** The newest of the concurrent searches stays. */
  function remember(found: Searched): void {
    if (searched === null || searched.upTo < found.upTo) searched = found;
  }

  /** The log ends before what was searched: its server was restored, or began anew. */
  function forgetBeyond(end: Placed | undefined): void {
    if (searched !== null && (end === undefined || end.position < searched.upTo)) searched = null;
  }

  /** What `placed` (last first) says about all before it; undefined: nothing yet. */
  function headIn(placed: readonly Placed[], count: number): string | null | undefined {
    for (const { position, event } of placed) {
      if (event !== null) return position;
      if (searched !== null && position <= searched.upTo) return searched.head;
    }
    return placed.length < count ? null : undefined;
  }

  async function walk(): Promise<void> {
    let upTo: string | null = null;
    for (let from: ReadFrom = 'end'; ; ) {
      const placed: Placed[] = await before(from, PAGE_EVENTS);
      if (from === 'end') forgetBeyond(placed[0]);
      upTo ??= placed[0]?.position ?? null;
      const head = headIn(placed, PAGE_EVENTS);
      if (head !== undefined) {
        if (upTo !== null) remember({ upTo, head });
        return;
      }
      from = placed.at(-1)?.position ?? from;
    }
  }

  return async () => {
    for (;;) {
      const last = await before('end', GLANCE);
      forgetBeyond(last[0]);
      const head = headIn(last, GLANCE);
      if (head !== undefined) {
        if (last[0] !== undefined) remember({ upTo: last[0].position, head });
        return head;
      }
      // One walk for all that ask meanwhile; each looks again, for what came since it began.
      walking ??= walk().finally(() => {
        walking = null;
      });
      await walking;
    }
  };
}
