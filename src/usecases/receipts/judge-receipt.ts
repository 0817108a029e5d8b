// Whether a recorded receipt verifies by what stood in the log before it: the same answer whenever the log is read.

import { decodeEvent, type RecordedEvent } from '#src/domain/event-codec.ts';
import { type EventOf, type KeyEvent, STREAM } from '#src/domain/events.ts';
import type { ReadReceipt } from '#src/domain/receipt/payload.ts';
import { verifySignedReceipt } from '#src/domain/receipt/verify.ts';
import { evolveKeys, type KeyRecord, type Primitives } from '#src/domain/signing-keys/keys.ts';
import type { EventLog } from '#src/ports/event-log.ts';

type JudgeReceiptDeps = { readonly log: EventLog; readonly primitives: Primitives };

/** `position`: of the ReceiptSigned event; `read`: the receipt, if it was read already. The receipt-only checks run. */
export type ReceiptJudge = (
  receipt: EventOf<'ReceiptSigned'>['data'],
  position: string,
  read?: ReadReceipt,
) => Promise<boolean>;

export function receiptJudge({ log, primitives }: JudgeReceiptDeps): ReceiptJudge {
  let known: KeyFacts | null = null;
  let reading: Promise<KeyFacts> | null = null;
  async function read(): Promise<KeyFacts> {
    const upTo = (await log.head()) ?? '';
    known = { events: (await log.readStream(STREAM.keys)).flatMap(keyFact), upTo };
    return known;
  }
  /** Read again only if what is known may end before `position`; receipts judged beside each other share a reading. */
  async function factsUpTo(position: string): Promise<KeyFacts> {
    if (known !== null && known.upTo >= position) return known;
    const joined = reading && (await reading);
    if (joined !== null && joined.upTo >= position) return joined;
    reading = read().finally(() => {
      reading = null;
    });
    return reading;
  }
  /** The keys by all events before `position`. */
  async function keysBefore(position: string): Promise<readonly KeyRecord[]> {
    const before = (await factsUpTo(position)).events.filter((fact) => fact.position < position);
    return before.reduce<readonly KeyRecord[]>((keys, { event }) => evolveKeys(keys, event), []);
  }
  return async ({ jws, receiptId, jobId }, position, read) => {
    const keys = await keysBefore(position);
    return (
      await verifySignedReceipt({ jws, receiptId, jobId, keys, job: null, log: null }, primitives, read)
    ).ok;
  };
}

/** `upTo`: position of the log's last event before they were read. */
type KeyFacts = { readonly events: readonly KeyFact[]; readonly upTo: string };
type KeyFact = { readonly event: KeyEvent; readonly position: string };

function keyFact(recorded: RecordedEvent): readonly KeyFact[] {
  const event = decodeEvent(recorded);
  const isOfKeys = event?.type === 'SigningKeyActivated' || event?.type === 'SigningKeyRetired';
  return isOfKeys ? [{ event, position: recorded.position }] : [];
}
