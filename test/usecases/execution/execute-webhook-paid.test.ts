// Paid calls: whatever comes how often and in which order, one payment buys one call, and is taken once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault } from '#src/domain/refusal.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { execute, paidWith } from '#test/support/given/given-call.ts';
import { outcomeOf, ran, refusalOf, replayed } from '#test/support/given/given-payment.ts';
import { gate } from '#test/support/log/fakes-log.ts';
import { failing } from '#test/support/world/fakes.ts';
import { shared, targetRules, world } from '#test/support/world/fakes-world.ts';

const counting = { ...targetRules, mode: 'blocklist-quota' } as const;

const jobIdOf = (answer: Awaited<ReturnType<typeof execute>>) => {
  assert.ok(answer.kind !== 'refused');
  return answer.execution.job.id;
};

// ── verify ──────────────────────────────────────────────────────────────────────────────────────────────

test('a copy that is verified only after the first has settled: the result is replayed, never a 402', async () => {
  const common = shared();
  common.payments.scriptVerify(async () => {
    assert.equal((await execute(world(common))).kind, 'ran');
    return { outcome: 'invalid', reason: 'nonce_used' };
  });
  const late = world(common);
  assert.equal((await execute(late)).kind, 'replayed');
  assert.deepEqual([late.outbound.sent.length, common.payments.calls.settle], [0, 1]);
});

test('a copy that fails its verify while the first still runs: idempotency_in_progress, never a 402', async () => {
  const common = shared();
  const { frozen, reached, open } = gate();
  common.log.onNext('ReceiptSigned', frozen);
  const first: Promise<unknown>[] = [];
  common.payments.scriptVerify(async () => {
    first.push(execute(world(common)));
    await reached;
    return { outcome: 'invalid', reason: 'nonce_used' };
  });
  assert.equal(outcomeOf(await execute(world(common))), 'idempotency_in_progress');
  open();
  await Promise.all(first);
});

test('payment_required: an invalid payment that is not recorded, with its reason; nothing is written, taken or sent', async () => {
  const it = world(shared(), { rules: counting });
  it.payments.scriptVerify({ outcome: 'invalid', reason: 'insufficient_funds' });
  const answer = await refusalOf(it);
  assert.equal(answer.refused, 'payment_required');
  assert.deepEqual(answer.details, { reason: 'insufficient_funds' });
  assert.deepEqual([it.trace, it.quota.taken('target')], [[], 0]);
});

test('facilitator_unavailable: nothing is written, taken or sent; the same payment works later', async () => {
  const it = world(shared(), { rules: counting });
  it.payments.scriptVerify({ outcome: 'unavailable' });
  await assert.rejects(execute(it), (error) => {
    assert.ok(error instanceof Fault);
    assert.deepEqual([error.code, error.retryAfterSeconds], ['facilitator_unavailable', 5]);
    return true;
  });
  assert.deepEqual([it.trace, it.quota.taken('target')], [[], 0]);
  assert.equal(outcomeOf(await execute(it)), 'ran');
  assert.equal(it.quota.taken('target'), 1);
});

test('target_quota_exceeded where the last unit went to another meanwhile: not charged', async () => {
  const it = world(shared(), { rules: counting });
  it.payments.scriptVerify(() => {
    it.quota.exhaust('target', 2500);
    return { outcome: 'valid' };
  });
  const answer = await refusalOf(it);
  assert.deepEqual([answer.refused, answer.retryAfterSeconds], ['target_quota_exceeded', 3]);
  assert.deepEqual(it.trace, []);
});

// ── what is charged ─────────────────────────────────────────────────────────────────────────────────────

test('a target that fails is charged once and replayed as the same failure with the same receipt', async () => {
  const it = world();
  it.outbound.script(failing());
  const first = await ran(it);
  const { job, receipt, payment } = first;
  assert.deepEqual(
    [job.status, job.responseStatus, job.errorCategory, job.reason],
    ['failed', 503, 'target_server_error', 'http_status'],
  );
  assert.notEqual(payment?.transaction ?? null, null);
  const again = await replayed(it);
  assert.deepEqual(again.job, job);
  assert.deepEqual([again.receipt, again.payment], [receipt, payment]);
  assert.deepEqual([it.outbound.sent.length, it.payments.calls.settle], [1, 1]);
});

test('one payment with K1, then with K2, no key or a decision, then a new payment with K2: two calls, and K2 never answers with the job of K1', async () => {
  const it = world();
  const first = jobIdOf(await execute(it));
  const guided = { route: 'execute/guided-webhook', decisionId: 'dec_1' } as const;
  for (const other of [{ key: 'k2' }, { key: null }, guided])
    assert.equal(outcomeOf(await execute(it, other)), 'payment_reused');
  const last = await execute(it, paidWith(otherPayment(), { key: 'k2' }));
  assert.equal(last.kind, 'ran');
  assert.notEqual(jobIdOf(last), first);
  assert.deepEqual([it.outbound.sent.length, it.payments.calls.settle], [2, 2]);
});

test('a key is its payer’s: another payer with the same key and request runs its own job', async () => {
  const it = world();
  const first = jobIdOf(await execute(it));
  const stranger = { ...otherPayment(), payer: '0x4444444444444444444444444444444444444444' };
  const second = await execute(it, paidWith(stranger));
  assert.equal(second.kind, 'ran');
  assert.notEqual(jobIdOf(second), first);
});
