// An honest history, written by the use cases themselves over faked payments and targets: paid jobs, decisions, retries,
// failures, payments that bought nothing, a rotation of keys, and checkpoints, every word of it truly signed.
import { createHash } from 'node:crypto';
import { readEvent } from '#src/domain/event-codec.ts';
import { STREAM } from '#src/domain/events.ts';
import { evolveKeys, type KeyRecord, toJwk } from '#src/domain/signing-keys/keys.ts';
import { TRANSPARENCY } from '#src/domain/transparency/checkpoint.ts';
import { appendLeaf, EMPTY_TREE, leafData, rootOf, type Tree } from '#src/domain/transparency/tree.ts';
import type { EventLog, RecordedEvent } from '#src/ports/event-log.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import type { Quota } from '#src/ports/quota.ts';
import { signedCheckpoint } from '#src/usecases/transparency/checkpoints.ts';
import { presentedPayment } from '#test/support/chain/fakes-payments.ts';
import { failing, letPass, succeeding } from '#test/support/world/fakes.ts';
import { given, type Shared, shared, type World, world } from '#test/support/world/fakes-world.ts';
import { execute, webhook } from './given-call.ts';
import { decided, guided } from './given-decision.ts';
import { keyActivated, keyRetired } from './given-events.ts';
import { type TestKey, testKey } from './primitives.ts';

export const ORIGIN = 'relay.example/receipts';

export type HistoryKeys = {
  /** Signs the first half of the receipts, then is retired. */
  readonly first: TestKey;
  readonly second: TestKey;
  readonly checkpoint: TestKey;
};

export type AuditHistory = {
  /** In global order. */
  readonly events: readonly RecordedEvent[];
  readonly keys: HistoryKeys;
  /** Signed notes, in order. */
  readonly checkpoints: readonly string[];
  /** The key set as anyone may have saved it at the end. */
  readonly jwks: { readonly keys: readonly object[] };
};

export const historyKeys = (): HistoryKeys => ({
  first: testKey(),
  second: testKey(),
  checkpoint: testKey({ purpose: 'checkpoint' }),
});

export type HistoryPlan = {
  readonly jobs: number;
  /** The relay's keys: a relay that rewrites its history still has them. */
  readonly keys?: HistoryKeys;
  /** The number of a job that never was. */
  readonly without?: number;
};

/** Between two checkpoints. */
const CHECKPOINT_EVERY = 20;
const RETIREMENT_MS = 600_000;

const openQuota: Quota = {
  take: async ({ maxRequests: limit }) => ({ allowed: true, limit, remaining: limit, resetMs: 60_000 }),
  look: async ({ maxRequests: limit }) => ({ allowed: true, limit, remaining: limit, resetMs: 60_000 }),
};

export async function auditHistory({
  jobs,
  keys = historyKeys(),
  without,
}: HistoryPlan): Promise<AuditHistory> {
  const common = shared();
  const signing = { key: keys.first };
  const it = world(common, {
    quota: openQuota,
    signer: { current: () => signing.key, former: () => null },
    receiptLog: () => ({ origin: ORIGIN, mmdSeconds: TRANSPARENCY.mmdSeconds }),
  });
  const book = checkpointBook(common, keys.checkpoint, () => it.clock.now());
  await announce(it, keys.first);
  await announce(it, keys.checkpoint);
  await book.sign();
  for (let n = 0; n < jobs; n++) {
    it.clock.advance(1000);
    if (n === Math.floor(jobs / 2)) {
      await rotate(it, keys);
      signing.key = keys.second;
    }
    if (n !== without) await oneJob(it, n);
    if (n % CHECKPOINT_EVERY === CHECKPOINT_EVERY - 1) await book.sign();
  }
  await book.sign();
  const { events } = common.log;
  return { events, keys, checkpoints: book.notes, jwks: jwksOf(events) };
}

const instant = (ms: number) => new Date(ms).toISOString();

async function announce(it: World, { keyId, x, record }: TestKey): Promise<void> {
  const { purpose } = record;
  await given(it, STREAM.keys, keyActivated({ keyId, x, purpose, activatedAt: instant(it.clock.now()) }));
}

/** The second is announced; the first continues until its retirement takes effect. */
async function rotate(it: World, { first, second }: HistoryKeys): Promise<void> {
  await announce(it, second);
  const now = it.clock.now();
  const effectiveAt = instant(now + RETIREMENT_MS);
  await given(it, STREAM.keys, keyRetired({ keyId: first.keyId, effectiveAt, retiredAt: instant(now) }));
  it.clock.advance(RETIREMENT_MS + 1000);
}

/** Of every ten: three guided, one retried, one that fails, one after a payment that was rejected. */
async function oneJob(it: World, n: number): Promise<void> {
  const presented = paymentOf(it, n);
  const request = webhook({ url: `https://target.example/hook/${n}`, idempotencyKey: `key-${n}` });
  if (n % 10 === 4) it.outbound.script(failing(), succeeding());
  if (n % 10 === 7) it.outbound.script(failing());
  if (n % 10 === 9) await rejectedFirst(it, n);
  if (n % 10 < 3) {
    const { decision } = await decided(it, { action: request });
    const outcome = await guided(it, decision.decisionId, { action: request, presented });
    if (outcome !== 'ran') throw new Error(`job ${n}: ${outcome}`);
    return;
  }
  const retry = n % 10 === 4 ? { retry: { attempts: 2, backoffMs: 0 } } : {};
  const answer = execute(it, { request: { ...request, ...retry }, key: `key-${n}`, presented });
  const { kind } = n % 10 === 4 ? await letPass(it.clock, answer) : await answer;
  if (kind !== 'ran') throw new Error(`job ${n}: ${kind}`);
}

/** The same key, by a payment that the facilitator refuses: it is free again afterwards. */
async function rejectedFirst(it: World, n: number): Promise<void> {
  it.payments.scriptSettle({ outcome: 'rejected', reason: 'insufficient_funds' });
  const request = webhook({ url: `https://target.example/hook/${n}` });
  await execute(it, { request, key: `key-${n}`, presented: paymentOf(it, n, 'rejected') });
}

function paymentOf(it: World, n: number, word = 'payment'): PresentedPayment {
  const digest = (text: string) => createHash('sha256').update(text).digest('hex');
  const { network, asset, payer } = presentedPayment();
  const nonce = `0x${digest(`${word} ${n}`)}`;
  return presentedPayment({
    nonce,
    hash: digest(`${network}:${asset}:${payer}:${nonce}`),
    payloadHash: digest(`payload ${word} ${n}`),
    validBefore: String(Math.floor(it.clock.now() / 1000) + 120),
  });
}

function checkpointBook({ log }: Shared, key: TestKey, now: () => number) {
  let tree: Tree = EMPTY_TREE;
  let read = 0;
  let signed: number | null = null;
  const notes: string[] = [];
  return {
    notes,
    /** Where there is more to sign. */
    async sign(): Promise<void> {
      for (; read < log.events.length; read++) {
        const recorded = log.events[read];
        const event = recorded === undefined ? null : readEvent(recorded);
        const data = event === null ? null : leafData(event);
        // The genesis is signed over nothing, whatever was announced before.
        if (data !== null) tree = appendLeaf(tree, data).tree;
      }
      if (tree.size === signed) return;
      signed = notes.length === 0 ? 0 : tree.size;
      const head =
        notes.length === 0
          ? { origin: ORIGIN, size: 0, root: rootOf(EMPTY_TREE) }
          : { origin: ORIGIN, size: tree.size, root: rootOf(tree) };
      const event = await signedCheckpoint(head, key, now());
      await given({ log }, STREAM.receiptLog, event);
      notes.push(event.data.note);
    },
  };
}

function jwksOf(events: readonly RecordedEvent[]) {
  const keys = events
    .filter(({ stream }) => stream === STREAM.keys)
    .map((recorded) => readEvent(recorded))
    .reduce<readonly KeyRecord[]>(
      (known, event) =>
        event?.type === 'SigningKeyActivated' || event?.type === 'SigningKeyRetired'
          ? evolveKeys(known, event)
          : known,
      [],
    );
  return { keys: keys.map(toJwk) };
}

/** The same events, ids and order in another log, an embedded one. */
export async function copyInto(log: EventLog, events: readonly RecordedEvent[]): Promise<void> {
  // The embedded log stores calls that are made together in their order.
  for (let from = 0; from < events.length; from += 500) {
    await Promise.all(
      events.slice(from, from + 500).map(({ stream, revision, id, type, data, metadata }) => {
        const expected = revision === 0n ? 'no_stream' : revision - 1n;
        return log.append(stream, expected, [{ id, type, data, metadata }]);
      }),
    );
  }
}
