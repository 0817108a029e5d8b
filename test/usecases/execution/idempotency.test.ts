import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findKnown, type Known, type Lookup } from '#src/usecases/execution/idempotency.ts';
import { given, type World, world } from '#test/support/fakes-world.ts';
import {
  at,
  attemptSucceeded,
  CLAIM_STREAM,
  hex,
  JOB_ID,
  jobCompleted,
  jobStarted,
  keyClaimed,
  keyReleased,
  OTHER_JOB_ID,
  PAYMENT_STREAM,
  paymentRefunded,
  paymentRejected,
  paymentReleased,
  paymentReserved,
  paymentSettled,
  receiptSigned,
  refundBegun,
  refundCancelled,
  settlementRetried,
  settlementUnknown,
} from '#test/support/given-events.ts';

const WEEK = 7 * 86_400_000;
const whole: Lookup = {
  paymentStream: PAYMENT_STREAM,
  claimStream: CLAIM_STREAM,
  fingerprint: hex('f'),
  scheduleId: null,
  authorization: { ...paymentReserved().data, payloadHash: null },
};
const signedBy = (payloadHash: string): Lookup => ({
  ...whole,
  authorization: { ...paymentReserved().data, payloadHash },
});
const byKey: Lookup = { ...whole, paymentStream: null };
const byPayment: Lookup = { ...whole, claimStream: null };
const otherPayment: Lookup = { ...whole, paymentStream: `payment-${hex('4')}` };
const otherRequest = { fingerprint: hex('0') };

/** The essence of an answer: its kind and code, job, or reason for release. */
function essence(known: Known) {
  switch (known.kind) {
    case 'completed':
      return ['completed', known.job.started.jobId];
    case 'refused':
      return [known.refusal.refused, known.refusal.details ?? null];
    case 'resume':
      return ['resume', known.jobId];
    case 'held':
      return ['held', known.jobId, known.holder.state.status];
    case 'new':
      return ['new', known.streams.release];
    default:
      return known satisfies never;
  }
}

async function knows(it: World, lookup: Lookup, expected: readonly unknown[]) {
  assert.deepEqual(essence(await findKnown(it.deps, lookup)), expected);
}

const running = [jobStarted()] as const;
const completed = [...running, attemptSucceeded(), jobCompleted(), receiptSigned()] as const;
const job = (it: World, events: Parameters<typeof given>[2][]) => given(it, `job-${JOB_ID}`, ...events);

// ── nothing known ───────────────────────────────────────────────────────────────────────────────────────

test('nothing known: new, with every stream at the place where it was read', async () => {
  const it = world();
  const known = await findKnown(it.deps, whole);
  assert.ok(known.kind === 'new');
  assert.deepEqual(
    [known.streams.payment?.expected, known.streams.claim?.expected],
    ['no_stream', 'no_stream'],
  );
  await knows(it, { ...byKey, claimStream: null }, ['new', null]);
});

test('a released key is free: new, at the revision of its release', async () => {
  const it = world();
  await given(it, CLAIM_STREAM, keyClaimed(), keyReleased());
  const known = await findKnown(it.deps, byKey);
  assert.ok(known.kind === 'new');
  assert.deepEqual([known.streams.claim?.expected, known.streams.release], [1n, null]);
});

// ── by its payment ──────────────────────────────────────────────────────────────────────────────────────

for (const [status, events] of [
  ['reserved', []],
  ['unknown', [settlementUnknown()]],
  ['retried', [settlementUnknown(), settlementRetried()]],
  ['settled', [paymentSettled()]],
] as const) {
  test(`a payment that is ${status} and whose job never started resumes under its own job id`, async () => {
    const it = world();
    await given(it, PAYMENT_STREAM, paymentReserved(), ...events);
    await knows(it, whole, ['resume', JOB_ID]);
    await knows(it, byPayment, ['resume', JOB_ID]);
  });

  test(`payment_reused: a payment that is ${status}, with another request`, async () => {
    const it = world();
    await given(it, PAYMENT_STREAM, paymentReserved(), ...events);
    await knows(it, { ...whole, ...otherRequest }, ['payment_reused', null]);
  });
}

for (const [status, event] of [
  ['rejected', paymentRejected()],
  ['released', paymentReleased()],
] as const) {
  test(`a payment that was ${status} is new again, also with another request, at the revision read`, async () => {
    const it = world();
    await given(it, PAYMENT_STREAM, paymentReserved(), event);
    const known = await findKnown(it.deps, { ...whole, ...otherRequest });
    assert.ok(known.kind === 'new');
    assert.equal(known.streams.payment?.expected, 1n);
  });
}

test("a payment's job that runs: idempotency_in_progress, naming the job", async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved(), paymentSettled());
  await job(it, [...running]);
  await knows(it, whole, ['idempotency_in_progress', { jobId: JOB_ID }]);
});

test("a payment's job that is completed: replayed permanently (a payment is never released)", async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved(), paymentSettled());
  await job(it, [...completed]);
  it.clock.skew(100 * WEEK);
  const known = await findKnown(it.deps, whole);
  assert.ok(known.kind === 'completed');
  assert.equal(known.job.receipt?.receiptId, receiptSigned().data.receiptId);
  await knows(it, { ...whole, ...otherRequest }, ['payment_reused', null]);
});

test('the payment is asked before the key: the same payment with another key is payment_reused', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved(), paymentSettled());
  await job(it, [...completed]);
  await knows(it, { ...whole, claimStream: `claim-${hex('2')}`, ...otherRequest }, ['payment_reused', null]);
});

// ── by its key ──────────────────────────────────────────────────────────────────────────────────────────

for (const [who, lookup, stream] of [
  ['in demo', byKey, null],
  ['with a new payment', otherPayment, PAYMENT_STREAM],
] as const) {
  const claim = keyClaimed({ paymentStream: stream });
  const reserved = async (it: World) => {
    if (stream !== null) await given(it, stream, paymentReserved(), paymentSettled());
  };

  test(`${who}, the key's job is completed: replayed; with another request idempotency_conflict`, async () => {
    const it = world();
    await given(it, CLAIM_STREAM, claim);
    await reserved(it);
    await job(it, [...completed]);
    await knows(it, lookup, ['completed', JOB_ID]);
    await knows(it, { ...lookup, ...otherRequest }, ['idempotency_conflict', null]);
  });

  test(`${who}, the key's job runs: idempotency_in_progress; with another request idempotency_conflict`, async () => {
    const it = world();
    await given(it, CLAIM_STREAM, claim);
    await reserved(it);
    await job(it, [...running]);
    it.clock.skew(10 * WEEK);
    await knows(it, lookup, ['idempotency_in_progress', { jobId: JOB_ID }]);
    await knows(it, { ...lookup, ...otherRequest }, ['idempotency_conflict', null]);
  });

  test(`${who}, the key frees 7 days after completion, for any request, not a millisecond earlier`, async () => {
    const it = world();
    await given(it, CLAIM_STREAM, claim);
    await reserved(it);
    await job(it, [
      jobStarted(),
      attemptSucceeded(),
      jobCompleted({ completedAt: at(5000) }),
      receiptSigned(),
    ]);
    it.clock.skew(WEEK + 4999);
    await knows(it, lookup, ['completed', JOB_ID]);
    it.clock.skew(1);
    await knows(it, lookup, ['new', 'retention_over']);
    await knows(it, { ...lookup, ...otherRequest }, ['new', 'retention_over']);
  });
}

test('claimed without a payment and never started: any repeat continues under its job id', async () => {
  const it = world();
  await given(it, CLAIM_STREAM, keyClaimed({ paymentStream: null }));
  await knows(it, byKey, ['resume', JOB_ID]);
  await knows(it, { ...byKey, ...otherRequest }, ['idempotency_conflict', null]);
});

for (const [status, events] of [
  ['reserved', []],
  ['unknown', [settlementUnknown()]],
  ['settled', [paymentSettled()]],
] as const) {
  test(`a new payment with a key whose own payment is ${status} and whose job never started: that payment is reconciled first, whatever its age`, async () => {
    const it = world();
    await given(it, CLAIM_STREAM, keyClaimed());
    await given(it, PAYMENT_STREAM, paymentReserved(), ...events);
    it.clock.skew(10 * WEEK);
    await knows(it, otherPayment, ['held', JOB_ID, status]);
    await knows(it, { ...otherPayment, ...otherRequest }, ['idempotency_conflict', null]);
  });
}

for (const [status, event, reason] of [
  ['rejected', paymentRejected(), 'payment_rejected'],
  ['released', paymentReleased(), 'payment_released'],
] as const) {
  test(`a key whose own payment was ${status} may be taken, also where a crash hid its IdempotencyKeyReleased`, async () => {
    const it = world();
    await given(it, CLAIM_STREAM, keyClaimed());
    await given(it, PAYMENT_STREAM, paymentReserved(), event);
    await knows(it, otherPayment, ['new', reason]);
    await knows(it, { ...otherPayment, ...otherRequest }, ['new', reason]);
    await knows(it, whole, ['new', reason]);
  });
}

test('a key whose own payment was refunded before its job started may be taken; while the refund has only begun, it may not', async () => {
  const it = world();
  await given(it, CLAIM_STREAM, keyClaimed());
  await given(it, PAYMENT_STREAM, paymentReserved(), paymentSettled(), refundBegun());
  await knows(it, otherPayment, ['idempotency_in_progress', { paymentState: 'refunding' }]);
  await knows(it, whole, ['payment_reused', { paymentState: 'refunding' }]);
  await given(it, PAYMENT_STREAM, paymentRefunded());
  await knows(it, otherPayment, ['new', 'payment_released']);
  await knows(it, whole, ['payment_reused', { paymentState: 'refunded' }]);
});

test('a request that only resembles that of a payment in refund learns nothing of the refund', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved(), paymentSettled(), refundBegun());
  await knows(it, { ...whole, fingerprint: hex('0') }, ['payment_reused', null]);
});

test('a payment whose refund was cancelled resumes its job, unless another job took the key meanwhile', async () => {
  const it = world();
  await given(it, CLAIM_STREAM, keyClaimed());
  await given(it, PAYMENT_STREAM, paymentReserved(), paymentSettled(), refundBegun(), refundCancelled());
  await knows(it, whole, ['resume', JOB_ID]);
  const taken = [
    keyReleased({ reason: 'payment_released' }),
    keyClaimed({ jobId: OTHER_JOB_ID, paymentStream: null }),
  ];
  await given(it, CLAIM_STREAM, ...taken);
  await knows(it, whole, ['idempotency_in_progress', null]);
});

test("a key whose payment was reserved again for another job: the claim's own reservation has ended", async () => {
  const it = world();
  await given(it, CLAIM_STREAM, keyClaimed());
  await given(
    it,
    PAYMENT_STREAM,
    paymentReserved(),
    paymentRejected(),
    paymentReserved({ jobId: OTHER_JOB_ID, fingerprint: hex('0') }),
  );
  await knows(it, otherPayment, ['new', 'payment_released']);
});

test("a key ends only with its own payment: another payment's end frees nothing", async () => {
  const it = world();
  await given(it, CLAIM_STREAM, keyClaimed());
  await given(it, PAYMENT_STREAM, paymentReserved());
  await given(
    it,
    otherPayment.paymentStream ?? '',
    paymentReserved({ jobId: OTHER_JOB_ID }),
    paymentRejected({ jobId: OTHER_JOB_ID }),
  );
  await knows(it, otherPayment, ['held', JOB_ID, 'reserved']);
});

test("a key whose job has started is not freed by its payment's end: that job stands", async () => {
  const it = world();
  await given(it, CLAIM_STREAM, keyClaimed());
  await given(it, PAYMENT_STREAM, paymentReserved(), paymentRejected({ evidence: 'operator' }));
  await job(it, [...running]);
  await knows(it, otherPayment, ['idempotency_in_progress', { jobId: JOB_ID }]);
});

test('a repeat gets the time of its next try', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved(), paymentSettled());
  await job(it, [...running]);
  const known = await findKnown(it.deps, whole);
  assert.ok(known.kind === 'refused');
  assert.equal(known.refusal.retryAfterSeconds, 2);
});

// ── a payment whose key another job holds ───────────────────────────────────────────────────────────────

const THEIRS = `payment-${hex('3')}`;
const theirs = keyClaimed({ jobId: OTHER_JOB_ID, paymentStream: THEIRS });
const theirJob = async (it: World, ...events: Parameters<typeof given>[2][]) =>
  given(it, `job-${OTHER_JOB_ID}`, ...events.map(ofTheirs));
const ofTheirs = ({ type, data }: Parameters<typeof given>[2]) => ({
  type,
  data: { ...data, jobId: OTHER_JOB_ID },
});

for (const [status, events] of [
  ['unknown', [settlementUnknown()]],
  ['retried', [settlementUnknown(), settlementRetried()]],
  ['settled', [paymentSettled()]],
  ['settled after it was rejected', [paymentRejected(), paymentSettled()]],
] as const) {
  const lost = async (claim = theirs) => {
    const it = world();
    await given(it, PAYMENT_STREAM, paymentReserved(), ...events);
    await given(it, CLAIM_STREAM, claim);
    await given(it, THEIRS, paymentReserved({ jobId: OTHER_JOB_ID }));
    return it;
  };

  test(`${status}, and the key is another job's by now: idempotency_in_progress by that job until it is completed`, async () => {
    const it = await lost();
    await knows(it, whole, ['idempotency_in_progress', null]);
    await theirJob(it, ...running);
    await knows(it, whole, ['idempotency_in_progress', { jobId: OTHER_JOB_ID }]);
  });

  test(`${status}, and the key is by now another's for another request, or for a completed job: idempotency_conflict`, async () => {
    await knows(await lost(keyClaimed({ ...theirs.data, ...otherRequest })), whole, [
      'idempotency_conflict',
      null,
    ]);
    const it = await lost();
    await theirJob(it, ...completed);
    await knows(it, whole, ['idempotency_conflict', null]);
  });

  test(`${status}, and the key's other holder has ended: it resumes, taking the key`, async () => {
    const it = await lost();
    await theirJob(it, ...completed);
    it.clock.skew(WEEK + 60_000);
    const known = await findKnown(it.deps, whole);
    assert.ok(known.kind === 'resume');
    assert.deepEqual([known.jobId, known.streams.release], [JOB_ID, 'retention_over']);
    const other = await lost();
    await given(other, THEIRS, paymentRejected({ jobId: OTHER_JOB_ID }));
    const free = await findKnown(other.deps, whole);
    assert.ok(free.kind === 'resume');
    assert.equal(free.streams.release, 'payment_rejected');
  });
}

test('reserved, and the key is another job’s: it continues, to give itself up', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved());
  await given(it, CLAIM_STREAM, theirs);
  await given(it, THEIRS, paymentReserved({ jobId: OTHER_JOB_ID }), paymentSettled({ jobId: OTHER_JOB_ID }));
  const known = await findKnown(it.deps, whole);
  assert.ok(known.kind === 'resume');
  assert.equal(known.streams.release, null);
});

// ── what it was found by ────────────────────────────────────────────────────────────────────────────────

test('what is found by its payment is distinguished from what is found by its key', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved());
  await given(it, CLAIM_STREAM, keyClaimed());
  const foundBy = async (lookup: Lookup) => {
    const known = await findKnown(it.deps, lookup);
    return known.kind === 'new' ? null : known.by;
  };
  assert.equal(await foundBy(whole), 'payment');
  assert.equal(await foundBy({ ...whole, ...otherRequest }), 'payment');
  assert.equal(await foundBy(otherPayment), 'key');
  assert.equal(await foundBy({ ...otherPayment, ...otherRequest }), 'key');
  await given(it, PAYMENT_STREAM, paymentSettled());
  await job(it, [...completed]);
  assert.equal(await foundBy(whole), 'payment');
  assert.equal(await foundBy(otherPayment), 'key');
});

test('payment_reused: a known payment whose signed payload must be the same, and is not', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved());
  const { payloadHash } = paymentReserved().data;
  await knows(it, signedBy(payloadHash), ['resume', JOB_ID]);
  await knows(it, signedBy(hex('0')), ['payment_reused', null]);
});

for (const [status, events] of [
  ['reserved', []],
  ['unknown', [settlementUnknown()]],
  ['retried', [settlementUnknown(), settlementRetried()]],
  ['settled', [paymentSettled()]],
] as const) {
  test(`payment_reused: another authorization with the nonce of a payment that is ${status}; and it is no guess`, async () => {
    const it = world();
    await given(it, PAYMENT_STREAM, paymentReserved(), ...events);
    const { amount, payTo, validBefore } = paymentReserved().data;
    const recorded = { amount, payTo, validBefore, payloadHash: null };
    const others = [
      { ...recorded, amount: '2999' },
      { ...recorded, payTo: `0x${'3'.repeat(40)}` },
      { ...recorded, validBefore: String(Number(validBefore) + 1) },
      null,
    ];
    for (const authorization of [...others, ...others, ...others]) {
      await knows(it, { ...whole, authorization }, ['payment_reused', null]);
    }
    await job(it, [...completed]);
    for (const authorization of others) {
      await knows(it, { ...whole, authorization }, ['payment_reused', null]);
    }
    await knows(it, { ...whole, authorization: recorded }, ['completed', JOB_ID]);
  });
}

test('only a copy of the payment can guess: a signed payload that is another closes nothing, one that is equal does', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved(), paymentSettled());
  await job(it, [...completed]);
  const { payloadHash } = paymentReserved().data;
  for (let i = 0; i < 12; i++) {
    await knows(it, { ...signedBy(hex('0')), ...otherRequest }, ['payment_reused', null]);
  }
  await knows(it, signedBy(payloadHash), ['completed', JOB_ID]);
  for (let i = 0; i < 10; i++) {
    await knows(it, { ...signedBy(payloadHash), ...otherRequest }, ['payment_reused', null]);
  }
  await knows(it, signedBy(payloadHash), ['payment_reused', null]);
});
