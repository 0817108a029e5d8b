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
  let latest: Promise<KeyFacts> | null = null;
  async function read(): Promise<KeyFacts> {
    try {
      const upTo = (await log.head()) ?? '';
      return { events: (await log.readStream(STREAM.keys)).flatMap(keyFact), upTo };
    } catch (error) {
      latest = null;
      throw error;
    }
  }
  /** Read again only if what is known may end before `position`; receipts judged beside each other share a reading. */
  async function factsUpTo(position: string): Promise<KeyFacts> {
    const seen = latest;
    const known = await seen;
    if (known !== null && known.upTo >= position) return known;
    // One that has begun meanwhile began after the event of `position`.
    if (latest === seen || latest === null) latest = read();
    return latest;
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
