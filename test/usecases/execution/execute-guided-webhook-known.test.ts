// One decision, one execution per payer; and what was accepted once is never asked for its decision again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PresentedPayment } from '#src/ports/payments.ts';
import { quiet } from '#test/support/fakes.ts';
import { tracedSlots } from '#test/support/fakes-admission.ts';
import { Crash, dies, gate } from '#test/support/fakes-log.ts';
import { otherPayment, presentedPayment } from '#test/support/fakes-payments.ts';
import { audited, shared, targetRules, type World, world } from '#test/support/fakes-world.ts';
import { decided, guided, guidedAnswer, plainAction } from '#test/support/given-decision.ts';

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

  test(`while the first runs, another payment of the same payer must wait: ${kind}`, async () => {
    const it = world();
    const decisionId = await decisionOf(it, action);
    const { frozen, open, reached } = gate();
    it.log.onNext('ReceiptSigned', frozen);
    const first = guided(it, decisionId, { action });
    await reached;
    const second = await guided(it, decisionId, { action, presented: otherPayment() });
    assert.equal(second, 'idempotency_in_progress');
    open();
    assert.equal(await first, 'ran');
    assert.deepEqual([it.outbound.sent.length, it.payments.ledger.size], [1, 1]);
  });
}

test('20 payments of one payer at once, on two processes, for one decision: one call, one charge', async () => {
  const common = shared();
  const them = [world(common, { slots: tracedSlots(512) }), world(common, { slots: tracedSlots(512) })];
  const decisionId = await decisionOf(them[0] as World, keyless);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      guided(them[i % 2] as World, decisionId, {
        action: keyless,
        presented: otherPayment((i + 256).toString(16)),
      }),
    ),
  );
  assert.equal(answers.filter((answer) => answer === 'ran').length, 1);
  const others = new Set(answers.filter((answer) => answer !== 'ran'));
  for (const other of others)
    assert.ok(['replayed', 'idempotency_in_progress', 'too_many_in_flight'].includes(other), other);
  const sent = them.reduce((sum, { outbound }) => sum + outbound.sent.length, 0);
  assert.deepEqual([sent, common.payments.ledger.size], [1, 1]);
});

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

test('payment_reused: a payment of one decision is not good for another', async () => {
  const it = world();
  const [first, second] = [await decisionOf(it, keyless), await decisionOf(it, keyless)];
  assert.equal(await guided(it, first, { action: keyless }), 'ran');
  assert.equal(await guided(it, second, { action: keyless }), 'payment_reused');
  assert.equal(await guided(it, 'no id at all', { action: keyless }), 'payment_reused');
});

// ── accepted once ───────────────────────────────────────────────────────────────────────────────────────

for (const [mode, changes] of [
  ['paid', {}],
  ['demo', { presented: null }],
] as const) {
  test(`${mode}: replayed after the decision expired, the target was blocked and its name died`, async () => {
    const it = world();
    const decisionId = await decisionOf(it);
    const first = await guidedAnswer(it, decisionId, changes);
    const later = world(it.common, {
      rules: { ...targetRules, mode: 'blocklist-quota', blockHosts: ['target.example'] },
    });
    later.resolver.answer({ outcome: 'not_found' });
    later.clock.skew(DAY + 1);
    const again = await guidedAnswer(later, decisionId, changes);
    assert.deepEqual([again.execution.replay, again.execution.job], [true, first.execution.job]);
    assert.deepEqual(again.decision, first.decision);
    assert.deepEqual([later.outbound.sent, it.payments.ledger.size], [[], mode === 'paid' ? 1 : 0]);
  });
}

for (const type of ['PaymentSettled', 'IdempotencyKeyClaimed', 'PaymentReserved'] as const) {
  for (const action of [plainAction(), keyless]) {
    const kind = action.idempotencyKey === undefined ? 'keyless' : 'with a key';
    test(`resumed after the decision expired, ${kind}, died after ${type}: executed once, charged once, receipted for its decision`, async () => {
      const it = world();
      const decisionId = await decisionOf(it, action);
      it.log.onNext(type, dies('after'));
      await assert.rejects(guided(it, decisionId, { action }), Crash);
      const later = world(it.common);
      later.clock.skew(2 * DAY);
      await guided(later, decisionId, { action }).catch(() => undefined);
      later.clock.advance(60_000);
      await quiet();
      const { execution } = await guidedAnswer(later, decisionId, { action });
      assert.equal(execution.job.decisionId, decisionId);
      assert.deepEqual(
        [it.outbound.sent.length + later.outbound.sent.length, it.payments.ledger.size],
        [1, 1],
      );
      assert.equal((await audited(later, execution.job.id)).ok, true);
    });
  }
}

test('resumed with another action after the decision expired: payment_reused, not the other action', async () => {
  const it = world();
  const decisionId = await decisionOf(it);
  it.log.onNext('PaymentSettled', dies('after'));
  await assert.rejects(guided(it, decisionId), Crash);
  const action = plainAction({ body: 'other' });
  assert.equal(await guided(world(it.common), decisionId, { action }), 'payment_reused');
  assert.equal(await guided(world(it.common), decisionId), 'ran');
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
