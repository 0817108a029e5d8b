// Whether a recorded receipt verifies by what stood in the log before it: the same answer whenever the log is read.

import { decodeEvent, type RecordedEvent } from '#src/domain/event-codec.ts';
import { type EventOf, STREAM } from '#src/domain/events.ts';
import type { ReadReceipt } from '#src/domain/receipt/payload.ts';
import type { Primitives } from '#src/domain/receipt/report.ts';
import { verifyReceipt } from '#src/domain/receipt/verify.ts';
import { evolveKeys, type KeyRecord } from '#src/domain/signing-keys/keys.ts';
import type { EventLog } from '#src/ports/event-log.ts';

type JudgeReceiptDeps = { readonly log: EventLog; readonly primitives: Primitives };

/** `position`: of the ReceiptSigned event; `read`: the receipt, if it was read already. The receipt-only checks run. */
export type JudgeReceipt = (
  receipt: EventOf<'ReceiptSigned'>['data'],
  position: string,
  read?: ReadReceipt,
) => Promise<boolean>;

export function receiptJudge({ log, primitives }: JudgeReceiptDeps): JudgeReceipt {
  let known: { readonly events: readonly RecordedEvent[]; readonly upTo: string } | null = null;
  /** Every key event before `position`: read again only if the cached events may end before it. */
  async function keyEventsBefore(position: string): Promise<readonly RecordedEvent[]> {
    if (known === null || known.upTo < position) {
      const upTo = (await log.head()) ?? '';
      known = { events: await log.readStream(STREAM.keys), upTo };
    }
    return known.events.filter((event) => event.position < position);
  }
  // Between two key events every receipt meets the same keys.
  let evolved: { readonly from: readonly RecordedEvent[]; readonly keys: readonly KeyRecord[] } | null = null;
  function keysAfter(events: readonly RecordedEvent[]): readonly KeyRecord[] {
    const same =
      evolved?.from.length === events.length && evolved.from.every(({ id }, i) => id === events[i]?.id);
    if (evolved === null || !same) evolved = { from: events, keys: keysOf(events) };
    return evolved.keys;
  }
  return async ({ jws, receiptId, jobId }, position, read) => {
    const keys = keysAfter(await keyEventsBefore(position));
    return (await verifyReceipt({ jws, receiptId, jobId, keys, job: null, log: null }, primitives, read)).ok;
  };
}

function keysOf(events: readonly RecordedEvent[]): readonly KeyRecord[] {
  let keys: readonly KeyRecord[] = [];
  for (const recorded of events) {
    const event = decodeEvent(recorded);
    if (event?.type === 'SigningKeyActivated' || event?.type === 'SigningKeyRetired')
      keys = evolveKeys(keys, event);
  }
  return keys;
}
