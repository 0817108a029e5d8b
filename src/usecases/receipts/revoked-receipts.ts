// Receipts that verified when they were recorded and do not any more, because a key of theirs was called compromised
// since. Rows keep what was verified then; this corrects what is returned. Without such a key the rows are not queried.
import { type Revocation, revocations } from '#src/domain/signing-keys/compromised.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { KeysAtHand } from '#src/usecases/signing-keys/key-ring.ts';

export type UndoneCounts = {
  /** Of the receipts in store. */
  readonly receipts: number;
  /** Of these, signed in the given minute or later. */
  readonly recent: number;
  /** When the last receipt in store that still verifies was signed; null: none does. */
  readonly latestVerifiedAt: string | null;
};

/** What the rows answer: of the receipts that verified when they were recorded. */
export type UndoneRows = {
  countUndone(by: readonly Revocation[], since: string): Promise<UndoneCounts>;
  undoneOf(by: readonly Revocation[], receiptIds: readonly string[]): Promise<readonly string[]>;
};

export type UndoneReceipts = {
  /** `since`: a minute, `YYYY-MM-DDTHH:MM`. null: nothing is undone. */
  counts(since: string): Promise<UndoneCounts | null>;
  among(receiptIds: readonly string[]): Promise<ReadonlySet<string>>;
};

export type UndoneDeps = {
  readonly rows: UndoneRows;
  readonly keys: KeysAtHand;
  readonly clock: Pick<Clock, 'monotonic'>;
};

/** A count may read every receipt: it is kept so long, and so many times as long as it took where that is longer. */
const KEPT_MS = 500;
const REST = 20;

export function undoneReceipts({ rows, keys, clock }: UndoneDeps): UndoneReceipts {
  let held: { readonly question: string; until: number; readonly answer: Promise<UndoneCounts> } | null =
    null;

  function counted(by: readonly Revocation[], since: string): Promise<UndoneCounts> {
    const question = JSON.stringify([by, since]);
    const begun = clock.monotonic();
    if (held?.question === question && begun < held.until) return held.answer;
    const entry = { question, until: Number.POSITIVE_INFINITY, answer: rows.countUndone(by, since) };
    held = entry;
    entry.answer.then(
      () => {
        const now = clock.monotonic();
        entry.until = now + Math.max(KEPT_MS, REST * (now - begun));
      },
      () => {
        if (held === entry) held = null;
      },
    );
    return entry.answer;
  }

  return {
    async counts(since) {
      const by = revocations(keys.atHand());
      if (by.length === 0) return null;
      const found = await counted(by, since);
      return found.receipts === 0 ? null : found;
    },
    async among(receiptIds) {
      const by = revocations(keys.atHand());
      return new Set(by.length === 0 || receiptIds.length === 0 ? [] : await rows.undoneOf(by, receiptIds));
    },
  };
}
