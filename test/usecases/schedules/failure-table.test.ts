// What runner.test.ts leaves of the failure table: the exact outcome and charge of each kind of refusal, and what an operator
// is shown of a run that was charged and not executed.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { STREAM } from '#src/domain/events.ts';
import { readReceipt, runOf } from '#src/domain/receipt/payload.ts';
import { inFlightSlots } from '#src/usecases/execution/process-limits.ts';
import { jobRecovery } from '#src/usecases/execution/recover-jobs.ts';
import { JOB, load, PAYMENT } from '#src/usecases/process/stream.ts';
import { fundRun } from '#src/usecases/schedules/buy-run.ts';
import { cancelSchedule } from '#src/usecases/schedules/end-run.ts';
import { listOpenPayments } from '#test/support/books.ts';
import { letPass } from '#test/support/fakes.ts';
import { Crash, dies } from '#test/support/fakes-log.ts';
import { otherPayment } from '#test/support/fakes-payments.ts';
import {
  buyerWith,
  commonSchedules,
  create,
  dueOf,
  fundNext,
  idOf,
  type ScheduleCommon,
  type ScheduleWorld,
  scheduleOf,
  scheduleWorld,
  skips,
} from '#test/support/fakes-schedules.ts';
import { targetRules } from '#test/support/fakes-world.ts';
import { T0 } from '#test/support/given-events.ts';

const PAYMENT_1 = STREAM.payment(otherPayment('1', { nonce: `0x${'1'.repeat(64)}` }).hash);
const UNUSED = { outcome: 'unused', chainTimeSeconds: T0 / 1000 } as const;
const at = (it: ScheduleWorld, ms: number) => it.clock.advance(ms - it.clock.now());

/** Reason of each skipped run, state of the payment, charges, calls, and keys that the vault has of payment headers. */
const outcome = async (it: ScheduleWorld) => [
  skips(it),
  (await load(it, PAYMENT, PAYMENT_1)).state.status,
  it.payments.ledger.size,
  it.outbound.sent.length,
  [...it.common.vault.keys.keys()].filter((name) => name.startsWith('job_')).length,
];
const openOf = async (it: ScheduleWorld) =>
  (await listOpenPayments({ log: it.log, clock: it.clock })).map(({ state }) => state);

test('late within the catch-up: the receipt says by how much', async () => {
  const it = scheduleWorld();
  const bought = await create(it);
  at(it, dueOf(1) + 299_000);
  await it.pass();
  const [ticket] = (await scheduleOf(it, idOf(bought))).tickets;
  const job = (await load(it, JOB, ticket?.jobId ?? '')).state;
  assert.ok(job.status === 'completed' && job.receipt !== null);
  const { payload } = readReceipt(job.receipt.jws);
  assert.equal(payload && runOf(payload)?.lateByMs, 299_000);
  assert.deepEqual(await outcome(it), [[], 'settled', 1, 1, 0]);
});

test('the payment has expired when its run may still start: not_funded, not charged', async () => {
  const it = scheduleWorld();
  await create(it, buyerWith(it, '1', dueOf(1) + 100_000));
  at(it, dueOf(1) + 200_000);
  await it.pass();
  assert.deepEqual(await outcome(it), [['1 not_funded'], 'released', 0, 0, 0]);
});

for (const reason of [
  'insufficient_funds',
  'invalid_transaction_state',
  'invalid_exact_evm_nonce_already_used',
] as const)
  test(`the facilitator refuses the payment with ${reason}: skipped with it, the ticket dropped, not charged`, async () => {
    const it = scheduleWorld();
    await create(it);
    at(it, dueOf(1));
    it.payments.scriptVerify({ outcome: 'invalid', reason });
    await it.pass();
    assert.deepEqual(await outcome(it), [[`1 ${reason}`], 'released', 0, 0, 0]);
  });

describe('the settlement is refused, and the chain shows that the authorization', () => {
  for (const [shown, finding] of [
    ['was cancelled', { outcome: 'cancelled' }],
    ['was used elsewhere', { outcome: 'spent_elsewhere' }],
  ] as const)
    test(`${shown}: skipped with the code of the payment's end, not charged`, async () => {
      const it = scheduleWorld();
      await create(it);
      at(it, dueOf(1));
      it.payments.scriptSettle({ outcome: 'unknown', cause: 'nonce_used', transaction: null });
      it.payments.scriptLookUp(UNUSED, finding, finding);
      await it.pass();
      const { state } = await load(it, PAYMENT, PAYMENT_1);
      assert.ok(state.status === 'rejected');
      assert.deepEqual(await outcome(it), [[`1 ${state.reason}`], 'rejected', 0, 0, 0]);
    });
});

describe('the target is refused when the run is due: target_refused, before settling, not charged', () => {
  for (const [by, refuse] of [
    [
      'policy',
      (it) =>
        Object.assign(it.deps, {
          rules: { ...targetRules, mode: 'blocklist-quota', blockHosts: ['target.example'] },
        }),
    ],
    [
      'an allow list',
      (it) =>
        Object.assign(it.deps, {
          rules: { ...targetRules, mode: 'allowlist', allowHosts: ['other.example'] },
        }),
    ],
    ['DNS', (it) => it.resolver.answer({ outcome: 'not_found' })],
  ] as readonly (readonly [string, (it: ScheduleWorld) => void])[])
    test(by, async () => {
      const it = scheduleWorld();
      await create(it);
      at(it, dueOf(1));
      refuse(it);
      await it.pass();
      assert.deepEqual(await outcome(it), [['1 target_refused'], 'released', 0, 0, 0]);
      assert.equal(it.payments.calls.settle, 0);
    });
});

test('DNS gives no answer when the run is due: it is tried again, and executed when DNS answers', async () => {
  const it = scheduleWorld();
  await create(it);
  at(it, dueOf(1));
  it.resolver.answer({ outcome: 'failed', timedOut: true });
  await it.pass();
  assert.equal(it.payments.calls.settle, 0);
  it.resolver.answer({ outcome: 'addresses', addresses: ['93.184.215.14'] });
  at(it, dueOf(1) + 120_000);
  await it.pass();
  assert.deepEqual((await outcome(it))[0], []);
  assert.equal(it.payments.calls.settle, 1);
});

test('killed between settled and started, and back after the catch-up: unserved, charged once, listed for a refund', async () => {
  const common = commonSchedules();
  const [a, b] = [scheduleWorld(common), scheduleWorld(common)];
  await create(a);
  for (const it of [a, b]) at(it, dueOf(1));
  common.log.onNext('JobStarted', dies('before'));
  await a.pass();
  at(b, dueOf(1) + 590_000);
  await b.pass();
  assert.deepEqual(await outcome(b), [['1 unserved'], 'settled', 1, 0, 0]);
  assert.deepEqual([await openOf(b), a.outbound.sent.length], [['unserved'], 0]);
});

test('killed during the call: interrupted_unknown, never sent again, charged once, refundable; its key is deleted', async () => {
  const common = commonSchedules();
  const [a, b] = [scheduleWorld(common), scheduleWorld(common)];
  const bought = await create(a);
  for (const it of [a, b]) at(it, dueOf(1));
  common.log.onNext('AttemptMade', dies('before'));
  await a.pass();
  assert.equal(a.outbound.sent.length, 1);
  const [ticket] = (await scheduleOf(b, idOf(bought))).tickets;
  const jobId = ticket?.jobId ?? '';
  const recovery = jobRecovery({ ...b.deps, candidates: async () => [jobId] });
  assert.deepEqual(await recovery.sweep({ exclusive: true }), [jobId]);
  for (let n = 0; n < 5; n++) {
    await b.pass();
    b.clock.advance(20_000);
  }
  const { state } = await load(b, JOB, jobId);
  assert.ok(state.status === 'completed');
  assert.deepEqual(await outcome(b), [[], 'settled', 1, 0, 0]);
  assert.deepEqual(await openOf(b), ['refundable']);
});

test('the settlement had no answer and no look-up either: unserved, listed as unknown', async () => {
  const it = scheduleWorld();
  await create(it);
  at(it, dueOf(1));
  const lost = { outcome: 'unknown', cause: 'timeout', transaction: null } as const;
  it.payments.scriptSettle(...Array.from({ length: 200 }, () => lost));
  it.payments.scriptLookUp(
    UNUSED,
    ...Array.from({ length: 200 }, () => ({ outcome: 'unavailable' as const })),
  );
  for (let ms = 0; ms < 500_000; ms += 20_000) {
    await it.pass();
    it.clock.advance(20_000);
  }
  assert.deepEqual(await outcome(it), [['1 unserved'], 'unknown', 0, 0, 0]);
  assert.deepEqual(await openOf(it), ['unknown']);
});

test('the quota of the target is used up: tried again within the catch-up, then missed, not charged', async () => {
  const it = scheduleWorld();
  await create(it, buyerWith(it, '1', dueOf(1) + 420_000));
  Object.assign(it.deps, { rules: { ...targetRules, mode: 'blocklist-quota' } });
  it.quota.exhaust('target', 1000);
  at(it, dueOf(1));
  await it.pass();
  assert.deepEqual(skips(it), []);
  for (let ms = 0; ms < 500_000; ms += 20_000) {
    it.clock.advance(20_000);
    it.quota.exhaust('target', 1000);
    await it.pass();
  }
  assert.deepEqual(await outcome(it), [['1 missed'], 'released', 0, 0, 0]);
});

test('too many calls are in flight until the run may not start any more: missed, not charged', async () => {
  const it = scheduleWorld();
  await create(it, buyerWith(it, '1', dueOf(1) + 420_000));
  Object.assign(it.deps, { slots: inFlightSlots(0) });
  at(it, dueOf(1));
  for (let ms = 0; ms < 500_000; ms += 20_000) {
    await it.pass();
    it.clock.advance(20_000);
  }
  assert.deepEqual(await outcome(it), [['1 missed'], 'released', 0, 0, 0]);
});

test('cancelled while its run is due: no run, not charged', async () => {
  const it = scheduleWorld();
  const bought = await create(it);
  at(it, dueOf(1));
  await letPass(it.clock, cancelSchedule(it.deps, idOf(bought), bought.cancelToken ?? ''));
  await it.pass();
  assert.deepEqual(await outcome(it), [['1 cancelled'], 'released', 0, 0, 0]);
  assert.equal(it.common.vault.keys.size, 0);
});

describe('a key that a crash has left', () => {
  /** The rows show no run of the schedule any more. */
  const unseen = async (common: ScheduleCommon) => {
    const it = scheduleWorld(common);
    Object.assign(it.deps, { candidates: async () => [] });
    at(it, dueOf(1) + 60_000);
    await it.pass();
    return it;
  };

  test('of a run whose process was killed during the call is deleted by the next process, and the others stay', async () => {
    const common = commonSchedules();
    const a = scheduleWorld(common);
    const bought = await create(a);
    const second = await fundNext(a, idOf(bought), buyerWith(a, '2'));
    at(a, dueOf(1));
    common.log.onNext('AttemptMade', dies('before'));
    await a.pass();
    const [ticket] = (await scheduleOf(a, idOf(bought))).tickets;
    const jobId = ticket?.jobId ?? '';
    const b = scheduleWorld(common);
    await jobRecovery({ ...b.deps, candidates: async () => [jobId] }).sweep({ exclusive: true });
    assert.ok(common.vault.keys.has(jobId));
    await unseen(common);
    const kept = second.schedule.tickets.map((one) => one.jobId).filter((one) => one !== jobId);
    assert.deepEqual([...common.vault.keys.keys()].sort(), [...kept, idOf(bought)].sort());
  });

  for (const type of ['RunFunded', 'RunSkipped', 'ScheduleCancelled'])
    test(`before or after ${type} is deleted when it has been found twice`, async () => {
      const common = commonSchedules();
      const it = scheduleWorld(common);
      const bought = await create(it);
      const second = buyerWith(it, '2');
      const token = bought.cancelToken ?? '';
      if (type === 'RunFunded') {
        common.log.onNext(type, dies('before'));
        await assert.rejects(letPass(it.clock, fundRun(it.deps, idOf(bought), second)), Crash);
        assert.equal(common.vault.keys.size, 3);
      } else {
        common.log.onNext(type, dies('after'));
        await assert.rejects(letPass(it.clock, cancelSchedule(it.deps, idOf(bought), token)), Crash);
      }
      const next = await unseen(common);
      next.clock.advance(600_000);
      await next.pass();
      const left = type === 'RunFunded' ? 2 : 0;
      assert.equal(common.vault.keys.size, left);
    });
});
