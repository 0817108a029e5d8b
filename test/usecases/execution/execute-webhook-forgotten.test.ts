// The event log lacks events that this relay has acknowledged: what it has is answered, and nothing new is begun.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault, refused } from '#src/domain/refusal.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { DEMO, execute, paidWith } from '#test/support/given/given-call.ts';
import { shared, world } from '#test/support/world/fakes-world.ts';

for (const [mode, changes] of [
  ['paid', {}],
  ['demo', DEMO],
] as const) {
  test(`${mode}: a known key is replayed, a new call is 503, and nothing is asked, appended, settled or sent`, async () => {
    const common = shared();
    const before = world(common);
    const first = await execute(before, changes);
    assert.equal(first.kind, 'ran');
    const it = world(common, { recordIsWhole: async () => false });
    assert.equal((await execute(it, changes)).kind, 'replayed');
    const [stored, settled] = [common.log.stored.length, common.payments.calls.settle];
    const fresh = mode === 'paid' ? paidWith(otherPayment(), { key: 'k2' }) : { ...DEMO, key: 'k2' };
    const fault = await execute(it, fresh).catch((error: unknown) => error);
    assert.ok(fault instanceof Fault);
    assert.deepEqual([fault.code, fault.retryAfterSeconds], ['event_log_unavailable', 60]);
    assert.match(fault.message, /lacks events that this relay has acknowledged: nothing was sent/);
    assert.deepEqual([common.log.stored.length, common.payments.calls.settle], [stored, settled]);
    assert.deepEqual([it.outbound.sent, it.slots.inFlight()], [[], 0]);
  });
}

test('a payment that its lost events may know: 503, and never a 402 that asks for another one', async () => {
  const common = shared();
  const it = world(common, { recordIsWhole: async () => false });
  common.payments.scriptNew(refused('payment_required', 'The payment has expired.'));
  const fault = await execute(it, paidWith(otherPayment())).catch((error: unknown) => error);
  assert.ok(fault instanceof Fault);
  assert.equal(fault.code, 'event_log_unavailable');
});
