// An embedded log for read models: jobs of all ends, several at a time, each receipt signed. It has no payment events, and
// the event chains in the receipts are placeholders: an audit reports them.
import { join } from 'node:path';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { secretCheck } from '#src/adapters/signing/hash.ts';
import { createKeyFile, keyFileStore, readKeyFile } from '#src/adapters/signing/key-file.ts';
import { type DomainEvent, type EventFacts, event, STREAM } from '#src/domain/events.ts';
import { isReceiptPayload, parseJws } from '#src/domain/receipt/payload.ts';
import { appendNext } from '#test/support/contract/event-log-fixtures.ts';
import { signed } from '#test/support/given/given-receipt.ts';
import {
  decisionAppend,
  jobAppends,
  newEvent,
  PLAN,
  type PlannedAppend,
} from '#test/support/given/job-histories.ts';
import { type TestKey, testKey } from '#test/support/given/primitives.ts';

/** Jobs under way at a time. */
const BESIDE = 32;

export type Filled = {
  readonly events: number;
  readonly receipts: number;
  /** Jobs ever started. */
  readonly jobs: number;
  readonly key: TestKey;
};

/** Appends at least `wanted` events under `dataDir`; `before`: continues what an earlier call has appended. */
export async function fillSignedLog(dataDir: string, wanted: number, before?: Filled): Promise<Filled> {
  const log = await sqliteEventLog({ file: join(dataDir, 'events.db') });
  const key = before?.key ?? testKey();
  let events = 0;
  let receipts = 0;
  const append = async ({ stream, events: planned }: PlannedAppend) => {
    const signedEvents = await Promise.all(planned.map((event) => withSignature(event, key)));
    await appendNext(log, stream, signedEvents.map(newEvent));
    events += planned.length;
    receipts += planned.filter(({ type }) => type === 'ReceiptSigned').length;
  };
  if (before === undefined) await append(activation(key, dataDir));
  let seed = before?.jobs ?? 0;
  const caller = async () => {
    while (events < wanted) for (const planned of job(seed++)) await append(planned);
  };
  await Promise.all(Array.from({ length: BESIDE }, caller));
  await log.close();
  return { events, receipts, jobs: seed, key };
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

/** Beside the keys of a new key file, so that a service can serve this log. */
function activation(own: TestKey, dataDir: string): PlannedAppend {
  const path = join(dataDir, 'keys.json');
  createKeyFile(path);
  const { hmacSecret } = readKeyFile(path);
  const keys = [{ ...own, purpose: 'receipt' }, ...keyFileStore(path).read().keys];
  const activatedAt = new Date(PLAN.startedAtMs - 1000).toISOString();
  const events = keys.map(({ keyId, purpose, x }) => {
    const facts = { keyId, purpose, alg: 'EdDSA', x, secretCheck: secretCheck(hmacSecret), activatedAt };
    return event('SigningKeyActivated', facts as EventFacts<'SigningKeyActivated'>);
  });
  return { stream: STREAM.keys, events };
}

/** The histories' receipts carry a signature of one byte's meaning: here they get a real one. */
async function withSignature(event: DomainEvent, key: TestKey): Promise<DomainEvent> {
  if (event.type !== 'ReceiptSigned') return event;
  const payload = parseJws(event.data.jws)?.payload;
  if (!isReceiptPayload(payload)) throw new Error('the history made no receipt');
  return { ...event, data: { ...event.data, keyId: key.keyId, jws: await signed(payload, key) } };
}
