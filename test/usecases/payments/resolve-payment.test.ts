// The chain is queried, and what it shows is recorded; a statement by hand only if it gives no usable answer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PaymentEvent } from '#src/domain/events.ts';
import type { OperatorStatement } from '#src/domain/payment/resolve.ts';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import { type ResolveChain, resolvePayment } from '#src/usecases/payments/resolve-payment.ts';
import { listOpenPayments } from '#test/support/given/books.ts';
import {
  hex,
  PAYMENT_STREAM,
  paymentReserved,
  paymentSettled,
  settlementRetried,
  settlementUnknown,
  T0,
} from '#test/support/given/given-events.ts';
import { afterOthers } from '#test/support/log/fakes-log.ts';
import { given, typesIn, type World, world } from '#test/support/world/fakes-world.ts';

const TX = `0x${hex('a')}`;
const REASON = 'The node was shut down.';
const SETTLED: OperatorStatement = { verdict: { kind: 'settled', transaction: TX }, reason: REASON };
const NOT_SETTLED: OperatorStatement = { verdict: { kind: 'not_settled' }, reason: REASON };
/** The samples' authorization surely ends after this. */
const OVER_MS = 181_000;
const UNKNOWN = [paymentReserved(), settlementUnknown()];
const paid: ChainFinding = { outcome: 'paid', transaction: TX };
const never: ChainFinding = { outcome: 'unused', chainTimeSeconds: T0 / 1000 + 181 };
const unavailable: ChainFinding = { outcome: 'unavailable' };

async function meets(...events: readonly PaymentEvent[]) {
  const it = world();
  if (events.length > 0) await given(it, PAYMENT_STREAM, ...events);
  it.clock.advance(OVER_MS);
  return it;
}
/** `isSettledBy`: what the node says of the transaction that a statement names. */
function resolve(
  it: World,
  finding: ChainFinding,
  statement: OperatorStatement | null = null,
  isSettledBy: boolean | null = null,
) {
  const asked: (string | null)[] = [];
  const chain: ResolveChain = {
    lookUp: async (_payment, { transaction = null } = {}) => {
      asked.push(transaction);
      return finding;
    },
    isSettledBy: async () => isSettledBy,
  };
  const resolved = resolvePayment({ ...it.deps, chain }, { id: PAYMENT_STREAM, statement });
  return Object.assign(resolved, { asked });
}
const last = async (it: World) => (await it.log.readStream(PAYMENT_STREAM)).at(-1);
const stateOf = async (it: World) => (await listOpenPayments(it.deps))[0]?.state ?? null;

test('a payment that the chain shows as paid is recorded so, and its money is listed until it is served or refunded', async () => {
  const it = await meets(...UNKNOWN);
  assert.equal(await stateOf(it), 'unknown');
  assert.equal((await resolve(it, paid)).kind, 'recorded');
  const { type, data, metadata } = (await last(it)) ?? {};
  assert.deepEqual(
    [type, data?.evidence, data?.transaction, data?.statement],
    ['PaymentSettled', 'chain', TX, null],
  );
  assert.deepEqual(metadata, { $correlationId: data?.jobId, $causationId: data?.jobId });
  assert.equal(await stateOf(it), 'unserved');
});

test('the hash that the facilitator named is looked at first', async () => {
  const hash = `0x${hex('b')}`;
  const it = await meets(paymentReserved(), settlementUnknown({ transaction: hash }));
  const resolving = resolve(it, never);
  await resolving;
  assert.deepEqual(resolving.asked, [hash]);
});

test('without an answer of the chain nothing is recorded, unless by hand', async () => {
  const it = await meets(...UNKNOWN);
  assert.deepEqual(await resolve(it, unavailable), { kind: 'chain_unavailable', status: 'unknown' });
  assert.deepEqual(await typesIn(it, PAYMENT_STREAM), ['PaymentReserved', 'SettlementUnknown']);
});

test('a statement that names a transaction: refused without this transfer, the chain’s fact with it, else by hand', async () => {
  const cases = [
    [false, 'other_transaction', null],
    [true, 'recorded', 'chain'],
    [null, 'recorded', 'operator'],
  ] as const;
  for (const [isSettledBy, kind, evidence] of cases) {
    const it = await meets(...UNKNOWN);
    const resolving = resolve(it, unavailable, SETTLED, isSettledBy);
    assert.equal((await resolving).kind, kind);
    assert.deepEqual(resolving.asked, [TX]);
    const recorded = (await last(it))?.data;
    assert.equal(recorded?.evidence ?? null, evidence);
    if (evidence === 'operator') assert.equal(recorded?.statement, REASON);
  }
  const it = await meets(...UNKNOWN);
  assert.equal((await resolve(it, paid, SETTLED)).kind, 'recorded');
  assert.equal((await last(it))?.data.evidence, 'chain');
});

test('a statement that the chain contradicts or confirms is not needed: the chain answers', async () => {
  const elsewhere: ChainFinding = { outcome: 'paid', transaction: `0x${hex('b')}` };
  for (const [finding, statement] of [
    [paid, NOT_SETTLED],
    [never, SETTLED],
    [never, NOT_SETTLED],
    [elsewhere, SETTLED],
    [{ outcome: 'cancelled' }, NOT_SETTLED],
  ] as const) {
    const it = await meets(...UNKNOWN);
    assert.equal((await resolve(it, finding, statement)).kind, 'chain_answers');
    assert.equal((await last(it))?.type, 'SettlementUnknown');
  }
});

test('nothing to resolve: the chain is not asked', async () => {
  for (const [status, events] of [
    ['absent', []],
    ['settled', [...UNKNOWN, paymentSettled()]],
  ] as const) {
    const it = await meets(...events);
    for (const statement of [null, NOT_SETTLED, SETTLED]) {
      const resolving = resolve(it, paid, statement);
      assert.deepEqual(await resolving, { status, kind: 'nothing_to_resolve' });
      assert.deepEqual(resolving.asked, []);
    }
  }
});

test('a service that settles first wins: the payment is judged again and nothing is added', async () => {
  const it = await meets(...UNKNOWN);
  it.log.onNext(
    'PaymentRejected',
    afterOthers(() => given(it, PAYMENT_STREAM, paymentSettled())),
  );
  assert.deepEqual(await resolve(it, never), { kind: 'nothing_to_resolve', status: 'settled' });
  assert.equal((await last(it))?.type, 'PaymentSettled');
});

test('a retry that comes first does not end it: the fact is appended at the new revision', async () => {
  const it = await meets(...UNKNOWN);
  it.log.onNext(
    'PaymentSettled',
    afterOthers(() => given(it, PAYMENT_STREAM, settlementRetried())),
  );
  assert.equal((await resolve(it, paid)).kind, 'recorded');
  assert.equal((await it.log.readStream(PAYMENT_STREAM)).length, 4);
});
