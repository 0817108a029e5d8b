// Values that a record may have once only. Repetitions are found at the end, by sorting: each look-up during the audit would
// cost as much as the rest of the event's checks.

import type { EventLocation, Fault, Found } from '#src/domain/audit/finding.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';

/** `owner`: what may have the value several times; null: nothing may. */
type Holder = EventLocation & { readonly owner: string | null };

const REPEATED = {
  event: ({ stream, revision }) => ({
    kind: 'event_id_repeated',
    message: `its id is that of revision ${stream} ${revision}`,
  }),
  receipt: ({ owner }) => ({
    kind: 'receipt_id_repeated',
    message: `a receipt of ${owner} has the same id`,
  }),
  /** An authorization moves money at most once, so it has one stream. */
  authorization: ({ owner }) => ({
    kind: 'payment_used_twice',
    message: `the same authorization is reserved in ${owner}`,
  }),
  transaction: ({ owner }) => ({
    kind: 'payment_shared',
    message: `its transaction has paid for ${owner} already, unless a facilitator settles several payments in one`,
  }),
  /** A transfer refunds payments of one payer only. */
  refund: () => ({ kind: 'payment_shared', message: 'its transfer has refunded another payer' }),
} as const satisfies Record<string, (first: Holder) => Fault>;

export type UniqueValues = ReturnType<typeof uniqueValues>;

export function uniqueValues(scratch: AuditScratch) {
  const list = scratch.list<Holder>();
  return {
    add(what: keyof typeof REPEATED, value: string, owner: string | null, location: EventLocation): void {
      list.add(`${what} ${value}`, { ...location, owner });
    },
    /** Each repetition by another owner than the first. */
    *repeated(): Generator<Found> {
      let first: readonly [key: string, holder: Holder] | null = null;
      for (const [key, holder] of list.repeated()) {
        if (first?.[0] !== key) first = [key, holder];
        else if (holder.owner === null || holder.owner !== first[1].owner) {
          const what = key.slice(0, key.indexOf(' ')) as keyof typeof REPEATED;
          const { owner: _, ...location } = holder;
          yield { fault: REPEATED[what](first[1]), location };
        }
      }
    },
  };
}
