// Whether the comparison of the books with the chain stands still, for whatever reason: a node that fails or is behind, rounds
// that are cut off, a defect.
import { STANDSTILL_MS } from '#src/domain/monitoring/health.ts';
import type { ChainBooks } from '#src/domain/payment/reconciliation.ts';
import { iso } from '#src/lib/iso.ts';
import type { Clock } from '#src/ports/clock.ts';

/** `limitMs`: instead of `STANDSTILL_MS`. */
export function standstill(
  { now, monotonic }: Pick<Clock, 'now' | 'monotonic'>,
  intervalMs: number,
  limitMs: number = STANDSTILL_MS,
) {
  const begun = { block: '', time: iso(now()), at: monotonic() };
  /** The last progress. `time`: of its record; of the block itself, if an earlier process made it. */
  let last: typeof begun | null = null;
  return {
    /** With the last block that any process has compared, as the event log has it; null: none. */
    look(books: Pick<ChainBooks, 'blockHash' | 'blockTime'> | null): void {
      const block = books?.blockHash ?? '';
      if (block === last?.block) return;
      const age = books === null ? 0 : Math.max(0, now() - Date.parse(books.blockTime));
      if (last !== null) last = { block, time: iso(now()), at: monotonic() };
      else if (books === null) last = begun;
      else last = { block, time: books.blockTime, at: monotonic() - age };
    },
    /** RFC 3339, since when it stands still; null: it does not. */
    since(): string | null {
      const { time, at } = last ?? begun;
      return monotonic() - at > limitMs + 2 * intervalMs ? time : null;
    },
  };
}
