// One decision, one execution per payer; and what was accepted once is never asked for its decision again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PresentedPayment } from '#src/ports/payments.ts';
import { otherPayment, presentedPayment } from '#test/support/chain/fakes-payments.ts';
import { decided, guided, guidedAnswer, plainAction } from '#test/support/given/given-decision.ts';
import { Crash, dies } from '#test/support/log/fakes-log.ts';
import { audited, type World, world } from '#test/support/world/fakes-world.ts';

const DAY = 24 * 3_600_000;
const keyless = plainAction({ idempotencyKey: undefined });
/** A decision of this action, or of one that lacks a key where none is required. */
async function decisionOf(it: World, action = plainAction()): Promise<string> {
  const { decision } = await decided(it, { action, buyerPolicy: { requireIdempotencyKey: false } });
  assert.equal(decision.recommendation, 'pay_and_execute');
  return decision.decisionId;
}
const ofPayer = (digit: string): PresentedPayment => ({
  ...otherPayment(digit),
  payer: `0x${digit.repeat(40)}`,
});

// ── one execution per payer ─────────────────────────────────────────────────────────────────────────────

for (const [kind, action] of [
  ['without a key the decision is the key', keyless],
  ['with a key it is the key', plainAction()],
] as const) {
  test(`the same decision with another payment of the same payer replays, uncharged: ${kind}`, async () => {
    const it = world();
    const decisionId = await decisionOf(it, action);
    const first = await guidedAnswer(it, decisionId, { action });
    for (const presented of [presentedPayment(), otherPayment('4'), otherPayment('5')]) {
      const again = await guidedAnswer(it, decisionId, { action, presented });
      assert.equal(again.execution.replay, true);
      assert.equal(again.execution.job.id, first.execution.job.id);
      assert.deepEqual(again.decision, first.decision);
    }
    assert.deepEqual([it.outbound.sent.length, it.payments.ledger.size], [1, 1]);
  });
}

test('another decision about the same keyless action approves another execution; with a key it does not', async () => {
  const it = world();
  const [first, second] = [await decisionOf(it, keyless), await decisionOf(it, keyless)];
  assert.equal(await guided(it, first, { action: keyless, presented: null }), 'ran');
  assert.equal(await guided(it, second, { action: keyless, presented: null }), 'ran');
  const [third, fourth] = [await decisionOf(it), await decisionOf(it)];
  assert.equal(await guided(it, third, { presented: null }), 'ran');
  assert.equal(await guided(it, fourth, { presented: null }), 'idempotency_conflict');
  assert.equal(it.outbound.sent.length, 3);
});

// ── accepted once ───────────────────────────────────────────────────────────────────────────────────────

test('resumed after the decision expired: executed, receipted for its decision; with another action payment_reused', async () => {
  const it = world();
  const decisionId = await decisionOf(it);
  it.log.onNext('PaymentSettled', dies('after'));
  await assert.rejects(guided(it, decisionId), Crash);
  const action = plainAction({ body: 'other' });
  const later = world(it.common);
  later.clock.skew(2 * DAY);
  assert.equal(await guided(later, decisionId, { action }), 'payment_reused');
  const { execution } = await guidedAnswer(later, decisionId);
  assert.equal(execution.job.decisionId, decisionId);
  assert.equal((await audited(later, execution.job.id)).ok, true);
  assert.deepEqual([it.outbound.sent.length + later.outbound.sent.length, it.payments.ledger.size], [1, 1]);
});

test('a new payment for an expired decision whose key was never used is refused: nothing resumes that never began', async () => {
  const it = world();
  const decisionId = await decisionOf(it, keyless);
  assert.equal(await guided(it, decisionId, { action: keyless, presented: ofPayer('4') }), 'ran');
  it.clock.skew(DAY);
  assert.equal(await guided(it, decisionId, { action: keyless, presented: ofPayer('4') }), 'replayed');
  assert.equal(
    await guided(it, decisionId, { action: keyless, presented: ofPayer('5') }),
    'decision_expired',
  );
  assert.equal(it.payments.ledger.size, 1);
});
