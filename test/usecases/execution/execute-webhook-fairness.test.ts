// The verifies of all callers share 16 places. Callers without money, from many addresses, cannot shut the others out.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITS, TIMES } from '#src/domain/limits.ts';
import { Fault } from '#src/domain/refusal.ts';
import { Cancel } from '#src/lib/time.ts';
import type { PresentedPayment, Verified } from '#src/ports/payments.ts';
import type { Resolver } from '#src/ports/resolver.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { execute, paidWith } from '#test/support/given/given-call.ts';
import { settlementUnknown } from '#test/support/given/given-events.ts';
import { meets, outcomeOf } from '#test/support/given/given-payment.ts';
import { letPass, quiet } from '#test/support/world/fakes.ts';
import { enterAll } from '#test/support/world/fakes-admission.ts';
import { shared, type World, world } from '#test/support/world/fakes-world.ts';

const VERIFY_MS = 1000;
const EMPTY = 'empty';

/** A facilitator that takes a second for each verify and refuses wallets without money. */
function slowFacilitator(changes: Parameters<typeof world>[1] = {}): World {
  const common = shared();
  async function verify({ payer }: PresentedPayment): Promise<Verified> {
    await it.clock.sleep(VERIFY_MS);
    return payer.startsWith(EMPTY)
      ? { outcome: 'invalid', reason: 'insufficient_funds' }
      : { outcome: 'valid' };
  }
  const it = world(common, { ...changes, payments: { ...common.payments, verify } });
  return it;
}

test('16 addresses that call without end from empty wallets shut none of 6 funded callers out', async () => {
  const it = slowFacilitator();
  let nonce = 0;
  const call = (payer: string, client: string) => {
    const presented = otherPayment(String(++nonce), { payer });
    return execute(it, paidWith(presented, { client, key: null, payer }));
  };
  let over = false;
  // Each address has three calls under way, each from a wallet of its own.
  const attackers = Array.from({ length: 48 }, async (_, i) => {
    for (let calls = 0; !over; calls++) {
      await call(`${EMPTY}${i}-${calls}`, `attacker ${i % 16}`);
      await it.clock.sleep(1);
    }
  });
  await quiet();
  const funded = Array.from({ length: 6 }, (_, i) => call(`funded${i}`, `client ${i}`));
  const answers = await letPass(it.clock, Promise.all(funded));
  over = true;
  await letPass(it.clock, Promise.all(attackers));
  assert.deepEqual(answers.map(outcomeOf), Array<string>(6).fill('ran'));
  assert.equal(it.slots.inFlight(), 0);
});

test('too_many_in_flight: who waits 10 s in vain is refused, charged nothing, and may come again', async () => {
  const it = world();
  const places = enterAll(it.deps.verifies);
  const before = it.clock.monotonic();
  const answer = await letPass(it.clock, execute(it));
  assert.ok(answer.kind === 'refused');
  assert.deepEqual([answer.refusal.refused, answer.refusal.retryAfterSeconds], ['too_many_in_flight', 2]);
  assert.equal(it.clock.monotonic() - before, LIMITS.verifyWaitMs.max);
  assert.deepEqual([it.payments.calls.verify, it.payments.ledger.size, it.trace], [0, 0, []]);
  for (const leave of places) leave();
  assert.equal(outcomeOf(await execute(it)), 'ran');
});

test('too_many_in_flight: nor is the node asked about a payment of unknown fate, which a repeat serves once there is a place', async () => {
  const it = await meets(settlementUnknown());
  const places = enterAll(it.deps.verifies);
  assert.equal(outcomeOf(await letPass(it.clock, execute(it))), 'too_many_in_flight');
  assert.deepEqual([it.payments.calls.lookUp, it.payments.calls.settle, it.slots.inFlight()], [0, 0, 0]);
  for (const leave of places) leave();
  assert.equal(outcomeOf(await execute(it)), 'ran');
});

test('too_many_in_flight: as soon as the process is asked to stop, the wait ends', async () => {
  const stopping = new Cancel();
  const it = world(shared(), { stopping });
  enterAll(it.deps.verifies);
  const waits = execute(it);
  await quiet();
  stopping.abort();
  assert.equal(outcomeOf(await waits), 'too_many_in_flight');
  assert.equal(it.clock.monotonic(), 0);
  assert.equal(outcomeOf(await execute(it)), 'too_many_in_flight', 'no wait begins');
  assert.equal(it.slots.inFlight(), 0);
});

test('nothing waits to be verified, or is charged, after the caller was answered', async () => {
  const resolver: Resolver = {
    async resolve() {
      await it.clock.sleep(TIMES.responseDeadlineMs - 1000);
      return { outcome: 'addresses', addresses: ['203.0.114.7'] };
    },
  };
  const it = world(shared(), { resolver });
  const places = enterAll(it.deps.verifies);
  await assert.rejects(letPass(it.clock, execute(it)), Fault);
  await quiet();
  assert.equal(it.clock.monotonic(), TIMES.responseDeadlineMs);
  for (const leave of places) leave();
  await quiet();
  assert.deepEqual([it.slots.inFlight(), it.payments.calls.verify, it.trace], [0, 0, []]);
});
