// What distinguishes a repeat from another request: payer, key or decision, and every field of the request.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { type CallChanges, DEMO, execute, lookupOf, paidWith } from '#test/support/given/given-call.ts';
import { assertOneRan, outcomeOf } from '#test/support/given/given-payment.ts';
import { hashWith } from '#test/support/given/primitives.ts';
import { tracedSlots } from '#test/support/world/fakes-admission.ts';
import { shared, targetRules, type World, world } from '#test/support/world/fakes-world.ts';

const base = { headers: { 'X-A': '1' }, body: { a: 1, b: [2] }, retry: { attempts: 2, backoffMs: 10 } };
const call = (request: NonNullable<CallChanges['request']> = {}, more: CallChanges = {}): CallChanges => ({
  ...DEMO,
  ...more,
  request: { ...base, ...request },
});
const counting = { ...targetRules, mode: 'blocklist-quota' } as const;
const jobIdOf = (answer: Awaited<ReturnType<typeof execute>>) => {
  assert.ok(answer.kind !== 'refused', outcomeOf(answer));
  return answer.execution.job.id;
};

// ── the fingerprint ─────────────────────────────────────────────────────────────────────────────────────

test('idempotency_conflict: the same key on the other route, or with another decision', async () => {
  const it = world();
  const guided = { route: 'execute/guided-webhook', decisionId: 'dec_1' } as const;
  assert.equal(outcomeOf(await execute(it, call({}, guided))), 'ran');
  for (const other of [
    {},
    { ...guided, decisionId: 'dec_2' },
    { ...guided, route: 'execute/webhook' } as const,
  ]) {
    assert.equal(outcomeOf(await execute(it, call({}, other))), 'idempotency_conflict');
  }
});

test('the same request, written otherwise, replays: case, defaults, numbers, order of names', async () => {
  const it = world();
  const id = jobIdOf(await execute(it, call()));
  const same = {
    url: 'https://TARGET.example:443/hook#x',
    method: 'POST',
    headers: { 'x-a': 1 },
    body: { b: [2], a: 1 },
    timeoutMs: 12_000,
  } as const;
  const again = await execute(it, call(same));
  assert.deepEqual([again.kind, jobIdOf(again)], ['replayed', id]);
});

test('fingerprints and claims are keyed: another secret finds neither the key nor the request of a payment', async () => {
  const it = world();
  await execute(it);
  const stranger = world(it.common, { keyedHash: hashWith('another secret') });
  assert.equal(outcomeOf(await execute(stranger, paidWith(otherPayment()))), 'ran');
  assert.equal(outcomeOf(await execute(stranger)), 'payment_reused');
});

// ── without a key, and decisions as keys ────────────────────────────────────────────────────────────────

test('without a key and a payment every call is a job of its own', async () => {
  const it = world();
  const ids = [await execute(it, call({}, { key: null })), await execute(it, call({}, { key: null }))].map(
    jobIdOf,
  );
  assert.notEqual(ids[0], ids[1]);
  assert.equal(lookupOf({ ...DEMO, key: null }).claimStream, null);
  assert.equal(
    it.log.events.some(({ type }) => type === 'IdempotencyKeyClaimed'),
    false,
  );
});

const guided = (decisionId: string, { request, ...more }: CallChanges = {}): CallChanges =>
  call(request, { key: null, route: 'execute/guided-webhook', decisionId, ...more });

test('a key that reads like a decision is not that decision', async () => {
  const it = world();
  await execute(it, guided('dec_1'));
  assert.equal(outcomeOf(await execute(it, call({}, { key: 'dec_1' }))), 'ran');
});

// ── at once ─────────────────────────────────────────────────────────────────────────────────────────────

const hundred = (processes: readonly World[], changes: CallChanges) =>
  Promise.all(
    Array.from({ length: 100 }, (_, i) => execute(processes[i % processes.length] as World, changes)),
  );

for (const count of [1, 4]) {
  test(`100 concurrent calls with one key, on ${count} process(es): one call and at most one unit of quota a process, then all replay it; without a key 100 calls`, async () => {
    const common = shared();
    const them = Array.from({ length: count }, () =>
      world(common, { slots: tracedSlots(512), rules: counting, targetQuotaPerMinute: 1000 }),
    );
    const sent = () => them.reduce((sum, { outbound }) => sum + outbound.sent.length, 0);
    assertOneRan(await hundred(them, DEMO));
    assert.equal(sent(), 1);
    for (const { quota, clock } of them) {
      assert.ok(quota.taken('target') <= 1, `${quota.taken('target')} units`);
      assert.equal(clock.advanceToNext(), false, 'no timer is left');
    }
    const replays = await hundred(them, DEMO);
    assert.deepEqual(new Set(replays.map(outcomeOf)), new Set(['replayed']));
    assert.equal(new Set(replays.map(jobIdOf)).size, 1);
    const free = await hundred(them, { ...DEMO, key: null });
    assert.equal(new Set(free.map(jobIdOf)).size, 100);
    assert.equal(sent(), 101);
  });
}
