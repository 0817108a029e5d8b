// An embedded log as a service leaves it: jobs of all ends, several at a time, each receipt truly signed.
import { join } from 'node:path';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { type DomainEvent, STREAM } from '#src/domain/events.ts';
import { isReceiptPayload, parseJws } from '#src/domain/receipt/payload.ts';
import { signed } from '#test/support/given-receipt.ts';
import {
  decisionAppend,
  jobAppends,
  newEvent,
  PLAN,
  type PlannedAppend,
} from '#test/support/job-histories.ts';
import { type TestKey, testKey } from '#test/support/primitives.ts';

/** Jobs under way at a time. */
const BESIDE = 32;

/** At least `wanted` events under `dataDir`; says how many there are and how many receipts among them. */
export async function fillSignedLog(
  dataDir: string,
  wanted: number,
): Promise<{ readonly events: number; readonly receipts: number }> {
  const log = await sqliteEventLog({ file: join(dataDir, 'events.db') });
  const key = testKey();
  let events = 0;
  let receipts = 0;
  const append = async ({ stream, events: planned }: PlannedAppend) => {
    const signedEvents = await Promise.all(planned.map((event) => withSignature(event, key)));
    await log.append(stream, 'any', signedEvents.map(newEvent));
    events += planned.length;
    receipts += planned.filter(({ type }) => type === 'ReceiptSigned').length;
  };
  await append(activation(key));
  let seed = 0;
  const caller = async () => {
    while (events < wanted) for (const planned of job(seed++)) await append(planned);
  };
  await Promise.all(Array.from({ length: BESIDE }, caller));
  await log.close();
  return { events, receipts };
}

/** Every third retried once, every seventh without an answer, every second paid, every tenth after a decision. */
function job(seed: number): readonly PlannedAppend[] {
  const decision = seed % 10 === 0 ? seed : null;
  const appends = jobAppends({
    ...PLAN,
    seed,
    startedAtMs: PLAN.startedAtMs + seed * 500,
    answers: seed % 3 === 0 ? [500, 200] : [seed % 7 === 0 ? null : 200],
    paid: seed % 2 === 0,
    decision,
  });
  return decision === null ? appends : [decisionAppend(seed), ...appends];
}

function activation({ keyId, x }: TestKey): PlannedAppend {
  const activatedAt = new Date(PLAN.startedAtMs - 1000).toISOString();
  const data = { v: 1, keyId, purpose: 'receipt', alg: 'EdDSA', x, secretCheck: '0'.repeat(64), activatedAt };
  return { stream: STREAM.keys, events: [{ type: 'SigningKeyActivated', data } as DomainEvent] };
}

/** The histories' receipts carry a signature of one byte's meaning: here they get a real one. */
async function withSignature(event: DomainEvent, key: TestKey): Promise<DomainEvent> {
  if (event.type !== 'ReceiptSigned') return event;
  const payload = parseJws(event.data.jws)?.payload;
  if (!isReceiptPayload(payload)) throw new Error('the history made no receipt');
  return { ...event, data: { ...event.data, keyId: key.keyId, jws: await signed(payload, key) } };
}
