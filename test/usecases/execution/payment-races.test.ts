import assert from 'node:assert/strict';
import { test } from 'node:test';
import { releasePayment } from '#src/usecases/execution/release-payment.ts';
import { DEMO, execute, KEY_STREAM, lookupOf } from '#test/support/given/given-call.ts';
import {
  at,
  hex,
  JOB_ID,
  keyReleased,
  OTHER_JOB_ID,
  PAYMENT_STREAM,
  paymentRejected,
  paymentReleased,
  paymentSettled,
  settlementRetried,
  settlementUnknown,
} from '#test/support/given/given-events.ts';
import {
  assertOneRan,
  keyClaimed,
  meets,
  outcomeOf,
  paymentReserved,
  paymentTypes,
  ran,
  refusalOf,
  rejected,
  SETTLEMENT_WATCH,
} from '#test/support/given/given-payment.ts';
import { afterOthers, gate } from '#test/support/log/fakes-log.ts';
import { given, shared, typesIn, type World, world } from '#test/support/world/fakes-world.ts';

const { claimStream, fingerprint: DEMO_PRINT } = lookupOf(DEMO);
const DEMO_KEY = claimStream ?? '';

/** The job that the log speaks of first. */
const firstJob = ({ log }: Pick<World, 'log'>) => String(log.events[0]?.data.jobId);

// ── somebody else's settlement ──────────────────────────────────────────────────────────────────────────

for (const [status, events] of [
  ['reserved', []],
  ['retried', [settlementUnknown(), settlementRetried({ owner: 'gone' })]],
] as const) {
  test(`${status} by another and younger than 45 s by our own watch: 409 idempotency_in_progress, nothing is settled`, async () => {
    const it = await meets(...events);
    const before = it.log.events.length;
    for (const wait of [0, SETTLEMENT_WATCH - 1]) {
      it.clock.advance(wait);
      const answer = await refusalOf(it);
      assert.equal(answer.refused, 'idempotency_in_progress');
      assert.equal(answer.retryAfterSeconds, 2);
    }
    assert.equal(it.payments.calls.settle, 0);
    assert.equal(it.log.events.length, before);
  });

  test(`${status} by another for 45 s: taken over, the retry recorded before it acts`, async () => {
    const it = await meets(...events);
    await execute(it);
    it.clock.advance(SETTLEMENT_WATCH);
    assert.equal((await execute(it)).kind, 'ran');
    const from = it.trace.indexOf('lookUp');
    assert.deepEqual(it.trace.slice(from, from + 4), [
      'lookUp',
      'SettlementRetried',
      'settle',
      'PaymentSettled',
    ]);
  });
}

for (const [status, events] of [
  ['reserved', []],
  ['retried', [settlementUnknown(), settlementRetried({ owner: 'gone' })]],
] as const) {
  test(`${status} by another owner where a lock proves that no other process lives: taken over at once, recorded before it acts`, async () => {
    const it = world(shared(), { exclusive: true });
    await given(it, PAYMENT_STREAM, paymentReserved({ owner: 'gone' }), ...events);
    await given(it, KEY_STREAM, keyClaimed());
    assert.equal((await execute(it)).kind, 'ran');
    const from = it.trace.indexOf('lookUp');
    assert.deepEqual(it.trace.slice(from, from + 3), ['lookUp', 'SettlementRetried', 'settle']);
  });
}

test('retried by this very process: waited for, also where no other process is alive, whichever process reserved it', async () => {
  const it = world(shared(), { exclusive: true });
  const retried = settlementRetried({ owner: it.owner });
  await given(it, PAYMENT_STREAM, paymentReserved({ owner: 'gone' }), settlementUnknown(), retried);
  await given(it, KEY_STREAM, keyClaimed());
  for (const wait of [0, SETTLEMENT_WATCH - 1]) {
    it.clock.advance(wait);
    assert.equal(outcomeOf(await execute(it)), 'idempotency_in_progress');
  }
  assert.equal(it.payments.calls.settle, 0);
  it.clock.advance(1);
  assert.equal((await execute(it)).kind, 'ran');
});

test('a wall clock an hour ahead makes no settlement look old', async () => {
  const it = await meets();
  await execute(it);
  it.clock.skew(3_600_000);
  assert.equal(outcomeOf(await execute(it)), 'idempotency_in_progress');
});

test('a reserver that was frozen before its settle call, while another took over: it does not settle as well', async () => {
  const it = world();
  const { frozen, reached, open } = gate();
  it.log.onNext('IdempotencyKeyClaimed', async (store) => {
    const answer = await store();
    await frozen(async () => null);
    return answer;
  });
  const late = execute(it);
  await reached;
  const other = world(it.common);
  await execute(other);
  other.clock.advance(SETTLEMENT_WATCH);
  const held = gate();
  it.payments.scriptSettle(async (payment) => {
    await held.frozen(async () => null);
    return it.payments.move(payment);
  });
  const takingOver = execute(other);
  await held.reached;
  open();
  assert.equal(outcomeOf(await late), 'idempotency_in_progress');
  assert.equal(it.payments.calls.settle, 1);
  held.open();
  assert.equal((await takingOver).kind, 'ran');
});

test('a resumer claimed the key before the reserver did: the reserver continues, its settle call is the first', async () => {
  const it = world();
  it.log.onNext(
    'IdempotencyKeyClaimed',
    afterOthers(async () => {
      assert.equal(outcomeOf(await execute(world(it.common))), 'idempotency_in_progress');
    }),
  );
  it.payments.scriptSettle(rejected);
  assert.equal(outcomeOf(await execute(it)), 'payment_required');
  assert.equal(it.payments.calls.settle, 1);
});

test('a resumer that loses a race stays a resumer: in its next round the reservation is still not its own', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved({ owner: 'gone' }));
  it.log.onNext(
    'IdempotencyKeyClaimed',
    afterOthers(() => given(it, KEY_STREAM, keyClaimed())),
  );
  assert.equal(outcomeOf(await execute(it)), 'idempotency_in_progress');
  assert.equal(it.payments.calls.settle, 0);
});

// ── races ───────────────────────────────────────────────────────────────────────────────────────────────

test('20 calls with one payment at once, on 4 processes: one settlement, one job, one call, the rest 409', async () => {
  const common = shared();
  const them = Array.from({ length: 4 }, () => world(common));
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => execute(them[i % 4] ?? world(common))),
  );
  assertOneRan(answers);
  assert.equal(common.payments.calls.settle, 1);
  assert.equal(
    them.reduce((sum, { outbound }) => sum + outbound.sent.length, 0),
    1,
  );
  assert.deepEqual(await paymentTypes(them[0] as World), ['PaymentReserved', 'PaymentSettled']);
});

test('the key went to another between look-up and claim: PaymentReleased names the winner, nothing is settled', async () => {
  const it = world();
  const winner = keyClaimed({ jobId: OTHER_JOB_ID, paymentStream: `payment-${hex('4')}` });
  it.log.onNext(
    'IdempotencyKeyClaimed',
    afterOthers(async () => {
      await given(it, `payment-${hex('4')}`, paymentReserved({ jobId: OTHER_JOB_ID }));
      await given(it, KEY_STREAM, winner);
    }),
  );
  assert.equal(outcomeOf(await execute(it)), 'idempotency_in_progress');
  assert.equal(it.payments.calls.settle, 0);
  const [reserved, released] = await it.log.readStream(PAYMENT_STREAM);
  const jobId = String(reserved?.data.jobId);
  assert.equal(released?.type, 'PaymentReleased');
  assert.deepEqual(released.data, paymentReleased({ jobId, releasedAt: at(0) }).data);
});

test('a reservation that never held its key is released when it comes back, and may be reserved again', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved({ owner: 'gone' }));
  await given(
    it,
    KEY_STREAM,
    keyClaimed({ jobId: OTHER_JOB_ID, paymentStream: null }),
    keyReleased({ jobId: OTHER_JOB_ID }),
  );
  await given(
    it,
    KEY_STREAM,
    keyClaimed({ jobId: OTHER_JOB_ID, fingerprint: hex('0'), paymentStream: `payment-${hex('4')}` }),
  );
  assert.equal(outcomeOf(await execute(it)), 'idempotency_conflict');
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'PaymentReleased']);
  assert.equal((await execute(it, { key: null })).kind, 'ran');
  assert.deepEqual((await paymentTypes(it)).slice(2), ['PaymentReserved', 'PaymentSettled']);
});

test('a key lost in demo: read again, and the call continues with the job of its holder', async () => {
  const it = world();
  it.log.onNext(
    'IdempotencyKeyClaimed',
    afterOthers(() =>
      given(it, DEMO_KEY, keyClaimed({ jobId: OTHER_JOB_ID, paymentStream: null, fingerprint: DEMO_PRINT })),
    ),
  );
  const answer = await ran(it, DEMO);
  assert.equal(answer.job.id, OTHER_JOB_ID);
  assert.deepEqual(await typesIn(it, DEMO_KEY), ['IdempotencyKeyClaimed']);
});

for (const [why, payment] of [
  ['that is settled', [paymentReserved(), paymentSettled()]],
  ['that may be settled', [paymentReserved(), settlementUnknown()]],
  ['that is being settled', [paymentReserved(), settlementUnknown(), settlementRetried()]],
  ['of another job', [paymentReserved({ jobId: OTHER_JOB_ID })]],
  ['that has ended', [paymentReserved(), paymentRejected()]],
] as const) {
  test(`a payment ${why} is never released for a lost key`, async () => {
    const it = world();
    await given(it, PAYMENT_STREAM, ...payment);
    const before = await paymentTypes(it);
    const facts = { jobId: JOB_ID, reason: 'key_lost', lostKeyTo: 'job_holder' };
    await releasePayment(it.deps, PAYMENT_STREAM, 'reserved', facts);
    assert.deepEqual(await paymentTypes(it), before);
  });
}

test('the payment was given up and reserved again for another job meanwhile: that job continues, once its reserver is surely gone', async () => {
  const it = world();
  it.log.onNext('IdempotencyKeyClaimed', async (store) => {
    const answer = await store();
    const released = paymentReleased({ jobId: firstJob(it) });
    await given(it, PAYMENT_STREAM, released, paymentReserved({ jobId: OTHER_JOB_ID, owner: 'gone' }));
    return answer;
  });
  assert.equal(outcomeOf(await execute(it)), 'idempotency_in_progress');
  assert.equal(it.payments.calls.settle, 0);
  assert.deepEqual(await typesIn(it, KEY_STREAM), [
    'IdempotencyKeyClaimed',
    'IdempotencyKeyReleased',
    'IdempotencyKeyClaimed',
  ]);
  it.clock.advance(SETTLEMENT_WATCH);
  const answer = await ran(it);
  assert.equal(answer.job.id, OTHER_JOB_ID);
  assert.equal(it.payments.calls.settle, 1);
});
