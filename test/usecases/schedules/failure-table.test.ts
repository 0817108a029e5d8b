// The failure table: outcome and charge of a run by what refuses it, and what an operator is shown of one that was charged
// and not executed.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { STREAM } from '#src/domain/events.ts';
import { readReceipt, runOf } from '#src/domain/receipt/payload.ts';
import { refused } from '#src/domain/refusal.ts';
import { inFlightSlots } from '#src/usecases/execution/process-limits.ts';
import { jobRecovery } from '#src/usecases/execution/recover-jobs.ts';
import { JOB, load, PAYMENT } from '#src/usecases/process/stream.ts';
import { fundRun } from '#src/usecases/schedules/buy-run.ts';
import { cancelSchedule } from '#src/usecases/schedules/end-run.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { listOpenPayments } from '#test/support/given/books.ts';
import { T0 } from '#test/support/given/given-events.ts';
import { Crash, dies } from '#test/support/log/fakes-log.ts';
import { letPass } from '#test/support/world/fakes.ts';
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
} from '#test/support/world/fakes-schedules.ts';
import { targetRules } from '#test/support/world/fakes-world.ts';

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

const lost = { outcome: 'unknown', cause: 'timeout', transaction: null } as const;
const always = <A>(answer: A): A[] => Array.from({ length: 200 }, () => answer);
const refusedWith =
  (reason: string): Given =>
  ({ payments }) =>
    payments.scriptVerify({ outcome: 'invalid', reason });
const endedAs =
  (outcome: 'cancelled' | 'spent_elsewhere'): Given =>
  ({ payments }) => {
    payments.scriptSettle({ outcome: 'unknown', cause: 'nonce_used', transaction: null });
    payments.scriptLookUp(UNUSED, { outcome }, { outcome });
  };
const terms = (reason: string) => refused('payment_required', 'x', { details: { reason } });
const ruledBy =
  (rules: object): Given =>
  ({ deps }) =>
    Object.assign(deps, { rules: { ...targetRules, ...rules } });

type Given = (it: ScheduleWorld) => unknown;
type Row = readonly [
  given: string,
  make: Given,
  skipped: string | null,
  payment: string,
  paidAndSent: string,
];
describe('a run that is due, where', () => {
  const rows: readonly Row[] = [
    ['the balance is gone', refusedWith('insufficient_funds'), 'insufficient_funds', 'released', '0 0'],
    [
      'a simulation fails',
      refusedWith('invalid_transaction_state'),
      'invalid_transaction_state',
      'released',
      '0 0',
    ],
    [
      'the nonce is used, and the chain does not say by what',
      (it) => {
        refusedWith('invalid_exact_evm_nonce_already_used')(it);
        it.payments.scriptLookUp({ outcome: 'unavailable' });
      },
      'invalid_exact_evm_nonce_already_used',
      'released',
      '0 0',
    ],
    ['the authorization was cancelled', endedAs('cancelled'), 'authorization_cancelled', 'rejected', '0 0'],
    [
      'the authorization was used elsewhere',
      endedAs('spent_elsewhere'),
      'authorization_spent_elsewhere',
      'rejected',
      '0 0',
    ],
    [
      'the settlement is refused for good',
      ({ payments }) => payments.scriptSettle({ outcome: 'rejected', reason: 'insufficient_funds' }),
      'insufficient_funds',
      'rejected',
      '0 0',
    ],
    [
      'the money moved before this log has reserved it: listed, and never executed',
      (it) => it.payments.move(buyerWith(it, '1').presented ?? assert.fail()),
      'unserved',
      'settled',
      '1 0 unserved',
    ],
    [
      'the policy refuses the target',
      ruledBy({ mode: 'blocklist-quota', blockHosts: ['target.example'] }),
      'target_refused',
      'released',
      '0 0',
    ],
    [
      'an allow list lacks the target',
      ruledBy({ mode: 'allowlist', allowHosts: ['other.example'] }),
      'target_refused',
      'released',
      '0 0',
    ],
    [
      'the target has no address',
      ({ resolver }) => resolver.answer({ outcome: 'not_found' }),
      'target_refused',
      'released',
      '0 0',
    ],
    [
      'the target is private now',
      ({ resolver }) => resolver.answer({ outcome: 'addresses', addresses: ['127.0.0.1'] }),
      'target_refused',
      'released',
      '0 0',
    ],
    [
      'the price is another one: executed for that of its payment',
      ({ payments }) => payments.scriptTerms(terms('amount_mismatch')),
      null,
      'settled',
      '1 1',
    ],
    [
      'the payee is another one',
      ({ payments }) => payments.scriptTerms(terms('recipient_mismatch')),
      'terms_changed',
      'released',
      '0 0',
    ],
    [
      'the authorization is for another network',
      ({ deps }) =>
        Object.assign(deps, {
          authorizations: { ...deps.authorizations, open: async () => terms('network_mismatch') },
        }),
      'terms_changed',
      'released',
      '0 0',
    ],
    ['the keys are lost', ({ common }) => common.vault.keys.clear(), 'lost', 'released', '0 0'],
  ];
  for (const [given, make, skipped, payment, paidAndSent] of rows)
    test(`${given}: ${skipped ?? 'executed'}, payment ${payment}, charged and sent ${paidAndSent}`, async () => {
      const it = scheduleWorld();
      const bought = await create(it);
      at(it, dueOf(1));
      make(it);
      await it.pass();
      const skips = skipped === null ? [] : [`1 ${skipped}`];
      const [charged, sent, ...open] = paidAndSent.split(' ');
      assert.deepEqual(await outcome(it), [skips, payment, Number(charged), Number(sent), 0]);
      assert.deepEqual(await openOf(it), open);
      const { state } = await load(it, PAYMENT, PAYMENT_1);
      if ('reason' in state) assert.equal(state.reason, skipped);
      if (skipped === null) return;
      assert.deepEqual((await scheduleOf(it, idOf(bought))).tickets, []);
      assert.equal(it.payments.calls.settle > 0, payment === 'rejected');
    });
});

test('the payment has expired when its run may still start: not_funded, not charged', async () => {
  const it = scheduleWorld();
  await create(it, buyerWith(it, '1', dueOf(1) + 100_000));
  at(it, dueOf(1) + 200_000);
  await it.pass();
  assert.deepEqual(await outcome(it), [['1 not_funded'], 'released', 0, 0, 0]);
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

describe('tried again until the run may not start any more:', () => {
  for (const [given, make, skipped, payment, open] of [
    [
      'the facilitator gives no answer',
      ({ payments }) => payments.scriptVerify(...always({ outcome: 'unavailable' as const })),
      'missed',
      'released',
      '',
    ],
    [
      'the quota of the target is used up',
      ({ deps, quota }) => {
        Object.assign(deps, { rules: { ...targetRules, mode: 'blocklist-quota' } });
        quota.exhaust('target', 1000);
      },
      'missed',
      'released',
      '',
    ],
    [
      'too many calls are in flight',
      ({ deps }) => Object.assign(deps, { slots: inFlightSlots(0) }),
      'missed',
      'released',
      '',
    ],
    [
      'the settlement has no answer, and no look-up either',
      ({ payments }) => {
        payments.scriptSettle(...always(lost));
        payments.scriptLookUp(UNUSED, ...always({ outcome: 'unavailable' as const }));
      },
      'unserved',
      'unknown',
      'unknown',
    ],
  ] satisfies readonly Row[])
    test(`${given}: ${skipped}, payment ${payment}, not charged`, async () => {
      const it = scheduleWorld();
      await create(it, buyerWith(it, '1', dueOf(1) + 420_000));
      at(it, dueOf(1));
      make(it);
      await it.pass();
      assert.deepEqual(skips(it), []);
      for (let ms = 0; ms < 500_000; ms += 20_000) {
        it.clock.advance(20_000);
        if (given.includes('quota')) make(it);
        await it.pass();
      }
      assert.deepEqual(await outcome(it), [[`1 ${skipped}`], payment, 0, 0, 0]);
      assert.deepEqual((await openOf(it)).join(), open);
    });
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
