// What a request that is not paid asks of the node has a place among those that are verified: so many of one client address
// at the same time, and so many of all.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITS } from '#src/domain/limits.ts';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import type { PresentedPayment, Verified } from '#src/ports/payments.ts';
import { createSchedule } from '#src/usecases/schedules/buy-run.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { execute, paidWith } from '#test/support/given/given-call.ts';
import { outcomeOf, rejected } from '#test/support/given/given-payment.ts';
import { letPass, quiet } from '#test/support/world/fakes.ts';
import { buyerWith, every10, scheduleWorld } from '#test/support/world/fakes-schedules.ts';
import { shared, type World, world } from '#test/support/world/fakes-world.ts';

const PLACES = LIMITS.verifiesPerClient.max;

/** A node that takes a second. */
function slowNode(it: Pick<World, 'clock' | 'payments'>) {
  const seen = { now: 0, most: 0, all: 0 };
  const begin = () => {
    seen.all += 1;
    seen.now += 1;
    seen.most = Math.max(seen.most, seen.now);
  };
  const lookUp = async (): Promise<ChainFinding> => {
    begin();
    await it.clock.sleep(1000);
    seen.now -= 1;
    return { outcome: 'cancelled' };
  };
  return { seen, lookUp };
}

const callOf = (n: number, client: string) =>
  paidWith(otherPayment(String(n), { payer: `0x${n}` }), { key: null, client });

test('the late look-up of payments that were rejected: as many at once as one address may have verified', async () => {
  const common = shared();
  const isOver = new Set<string>();
  const verify = async ({ nonce }: PresentedPayment): Promise<Verified> =>
    isOver.has(nonce) ? { outcome: 'invalid', reason: 'insufficient_funds' } : { outcome: 'valid' };
  const it = world(common, { payments: { ...common.payments, verify } });
  for (let n = 0; n < 6; n++) {
    it.payments.scriptSettle(rejected);
    assert.equal(outcomeOf(await execute(it, callOf(n, 'stranger'))), 'payment_required');
    isOver.add(otherPayment(String(n)).nonce);
  }
  const { seen, lookUp } = slowNode(it);
  it.payments.scriptLookUp(...Array.from({ length: 6 }, () => lookUp));
  const again = Array.from({ length: 6 }, (_, n) => execute(it, callOf(n, 'stranger')));
  await quiet();
  assert.equal(seen.now, PLACES);
  assert.equal(
    outcomeOf(await execute(it, callOf(7, 'another'))),
    'ran',
    'another address has places of its own',
  );
  const answers = await letPass(it.clock, Promise.all(again));
  assert.deepEqual(answers.map(outcomeOf), Array<string>(6).fill('payment_required'));
  assert.deepEqual([seen.most, seen.all], [PLACES, 6]);
});

test('what a run’s payment is worth: as many questions at once as one address may have verified', async () => {
  const it = scheduleWorld();
  const { seen, lookUp } = slowNode(it);
  it.payments.scriptLookUp(...Array.from({ length: 4 }, () => lookUp));
  const buyers = ['1', '2', '3', '4'].map((digit) => ({ ...buyerWith(it, digit), payer: `0x${digit}` }));
  const bought = buyers.map((buyer) =>
    createSchedule(it.deps, every10(), {
      ...buyer,
      presented: buyer.presented && { ...buyer.presented, payer: buyer.payer },
    }),
  );
  await quiet();
  assert.equal(seen.now, PLACES);
  await letPass(it.clock, Promise.all(bought));
  assert.deepEqual([seen.most, seen.all], [PLACES, 4]);
});
