// Payments for runs of schedules, beside the chain: what rounds, `relay payments`, its sums and `resolve` make of them.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sha256, toHex, utf8 } from '#src/domain/encoding.ts';
import { identityText, type PaymentReserved } from '#src/domain/events/payment.ts';
import { type DomainEvent, STREAM } from '#src/domain/events.ts';
import { beginPaymentRefund } from '#src/usecases/payments/begin-refund.ts';
import { resolvePayment } from '#src/usecases/payments/resolve-payment.ts';
import { ACCOUNT, transactionOf } from '#test/support/chain/fakes-chain.ts';
import {
  at,
  paymentDeferred,
  paymentReleased,
  settlementUnknown,
  T0,
} from '#test/support/given/given-events.ts';
import { made, type ReconciledWorld, reconciledWorld } from '#test/support/world/reconciled-world.ts';

const DUE_SECONDS = 6 * 86_400;

/** A ticket that lives for six days. */
async function ticket(it: ReconciledWorld, name: string, ...after: readonly DomainEvent[]) {
  const jobId = `job_${name}`;
  const nonce = `0x${name.padStart(64, '0')}`;
  const { asset } = ACCOUNT;
  const validBefore = String(T0 / 1000 + DUE_SECONDS + 420);
  const dueAt = at(DUE_SECONDS * 1000);
  const deferred = paymentDeferred({ jobId, nonce, asset, validBefore, dueAt });
  const { scheduleId: _, run: __, dueAt: ___, deferredAt, ...authorized } = deferred.data;
  const reserved: PaymentReserved = { ...authorized, v: 1, owner: 'owner-1', reservedAt: deferredAt };
  const stream = STREAM.payment(toHex(sha256(utf8(identityText(reserved)))));
  await it.append(stream, deferred, ...after);
  return { stream, jobId, reserved };
}

const statesOf = async (it: ReconciledWorld) => (await it.all()).map(({ state }) => state);
const reserve = ({ reserved }: { readonly reserved: PaymentReserved }): DomainEvent => ({
  type: 'PaymentReserved',
  data: reserved,
});
const resolve = (it: ReconciledWorld, id: string) =>
  resolvePayment(
    { ...it.deps, chain: { lookUp: it.chain.lookUp, isSettledBy: async () => null } },
    { id, statement: null },
  );

describe('a payment for a run', () => {
  test('that is not due is not listed: it is in no sum, and no round and no command changes it', async () => {
    const it = reconciledWorld();
    const { stream } = await ticket(it, '1');
    it.pass(600);
    const { round } = await made(it.round());
    assert.deepEqual([round.settledFound, round.missing, round.unattributed], [0, 0, []]);
    assert.deepEqual([await statesOf(it), await it.states()], [[], {}]);
    const { charged, open, received, balanced } = await it.balance();
    assert.deepEqual([charged, open, received, balanced], ['0', '0', '0', true]);
    assert.equal((await resolve(it, stream)).kind, 'nothing_to_resolve');
    const findTransfers = () => assert.fail('it is not charged');
    const options = { includeServed: true, statement: 'certain' };
    const begun = await beginPaymentRefund({ ...it.deps, findTransfers }, stream, options);
    assert.deepEqual(begun, { outcome: 'refused', id: stream, reason: 'not_found' });
    assert.deepEqual(await it.types({ stream }), ['PaymentDeferred']);
  });

  test('whose schedule is cancelled is released, and in no sum', async () => {
    const it = reconciledWorld();
    await ticket(it, '1', paymentReleased({ jobId: 'job_1', reason: 'cancelled', lostKeyTo: null }));
    it.pass(600);
    await made(it.round());
    assert.deepEqual([await statesOf(it), await it.states()], [['released'], {}]);
    assert.deepEqual((await it.balance()).charged, '0');
  });

  test('whose authorization was cancelled or used elsewhere: no money of ours; it ends when its run is due', async () => {
    const it = reconciledWorld();
    const [cancelled, elsewhere] = [await ticket(it, '1'), await ticket(it, '2')];
    it.chain.cancel(cancelled.reserved);
    it.chain.pay({ ...elsewhere.reserved, payTo: '0x4444444444444444444444444444444444444444' });
    it.pass(600);
    const { round } = await made(it.round());
    assert.deepEqual([round.settledFound, round.received, round.unattributed], [0, '0', []]);
    assert.deepEqual([await statesOf(it), await it.states()], [[], {}]);
  });

  for (const isFirst of [true, false])
    test(`whose money moved before its run: charged, and unserved until the run${isFirst ? '; it is the first of its payee' : ''}`, async () => {
      const it = reconciledWorld();
      if (!isFirst) await made(it.round());
      const { stream, reserved } = await ticket(it, '1');
      it.chain.pay(reserved);
      it.pass(600);
      const { round } = await made(it.round());
      assert.deepEqual([round.settledFound, round.received, round.unattributed], [1, '3000', []]);
      assert.deepEqual(await it.types({ stream }), ['PaymentDeferred', 'PaymentSettled']);
      assert.deepEqual(await it.states(), { 1: 'unserved' });
      const { charged, open, balanced } = await it.balance();
      assert.deepEqual([charged, open, balanced], ['3000', '3000', true]);
    });

  test('whose settlement had no answer: a round and `resolve` find the transfer', async () => {
    for (const how of ['round', 'resolve'] as const) {
      const it = reconciledWorld();
      const one = await ticket(it, '1');
      await it.append(one.stream, reserve(one), settlementUnknown({ jobId: one.jobId }));
      it.chain.pay(one.reserved);
      it.pass(600);
      assert.deepEqual(await it.states(), { 1: 'unknown' });
      if (how === 'round') assert.equal((await made(it.round())).round.settledFound, 1);
      else assert.equal((await resolve(it, one.stream)).kind, 'recorded');
      const [row] = await it.all();
      assert.deepEqual([row?.state, row?.transaction], ['unserved', transactionOf(one.reserved)], how);
    }
  });

  test('whose settlement had no answer and moved nothing: rejected when it can no longer', async () => {
    const it = reconciledWorld();
    const one = await ticket(it, '1');
    await it.append(one.stream, reserve(one), settlementUnknown({ jobId: one.jobId }));
    it.pass(DUE_SECONDS + 900);
    while ((await made(it.round())).more);
    assert.deepEqual([await statesOf(it), await it.states()], [['rejected'], {}]);
    assert.equal((await it.balance()).charged, '0');
  });
});
