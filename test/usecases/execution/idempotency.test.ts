import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findKnown, type Known, type Lookup } from '#src/usecases/execution/idempotency.ts';
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
} from '#test/support/given/given-events.ts';
import { given, type World, world } from '#test/support/world/fakes-world.ts';

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
      return ['resume', known.jobId, ...(known.streams.release === null ? [] : [known.streams.release])];
    case 'held':
      return ['held', known.jobId, known.streams.payment.state.status];
    case 'new':
      return ['new', known.streams.release];
    default:
      return known satisfies never;
  }
}

async function knows(it: World, lookup: Lookup, expected: readonly unknown[]) {
  assert.deepEqual(essence(await findKnown(it.deps, lookup)), expected);
}

type Event = Parameters<typeof given>[2];
/** What is stored, by stream, and how much later it is asked for. `their`: of another job, which has the key. */
type Stored = {
  readonly payment?: readonly Event[];
  readonly claim?: readonly Event[];
  readonly job?: readonly Event[];
  readonly theirPayment?: readonly Event[];
  readonly theirJob?: readonly Event[];
  readonly laterMs?: number;
};
/** What is asked for, and the answer. */
type Asked = readonly [lookup: Lookup, expected: readonly unknown[]];
type Rule = readonly [rule: string, stored: Stored, ...asked: readonly Asked[]];

const THEIRS = `payment-${hex('3')}`;
const ofTheirs = ({ type, data }: Event) => ({ type, data: { ...data, jobId: OTHER_JOB_ID } }) as Event;
const theirs = keyClaimed({ jobId: OTHER_JOB_ID, paymentStream: THEIRS });

async function holding({ payment, claim, job, theirPayment, theirJob, laterMs = 0 }: Stored): Promise<World> {
  const it = world();
  for (const [stream, events = []] of [
    [PAYMENT_STREAM, payment],
    [CLAIM_STREAM, claim],
    [`job-${JOB_ID}`, job],
    [THEIRS, theirPayment?.map(ofTheirs)],
    [`job-${OTHER_JOB_ID}`, theirJob?.map(ofTheirs)],
  ] as const)
    if (events.length > 0) await given(it, stream, ...events);
  it.clock.skew(laterMs);
  return it;
}

const running = [jobStarted()];
const completed = [...running, attemptSucceeded(), jobCompleted(), receiptSigned()];
const reserved = [paymentReserved()];
const settled = [...reserved, paymentSettled()];
const refunding = [...settled, refundBegun()];
const other = (lookup: Lookup): Lookup => ({ ...lookup, ...otherRequest });

const RESUMED = ['resume', JOB_ID];
const REPLAYED = ['completed', JOB_ID];
const REUSED = ['payment_reused', null];
const CONFLICT = ['idempotency_conflict', null];
const isNew = (release: string | null) => ['new', release];
const inProgress = (details: object | null) => ['idempotency_in_progress', details];
const byJob = (jobId: string) => inProgress({ jobId });

const BY_PAYMENT: readonly Rule[] = [
  ['nothing known: new', {}, [whole, isNew(null)], [{ ...byKey, claimStream: null }, isNew(null)]],
  ...(
    [
      ['reserved', reserved],
      ['unknown', [...reserved, settlementUnknown()]],
      ['retried', [...reserved, settlementUnknown(), settlementRetried()]],
      ['settled', settled],
    ] as const
  ).map(
    ([status, payment]): Rule => [
      `a payment that is ${status} and whose job never started resumes under its own job id; with another request payment_reused`,
      { payment },
      [whole, RESUMED],
      [byPayment, RESUMED],
      [other(whole), REUSED],
    ],
  ),
  [
    "a payment's job that runs: idempotency_in_progress, naming the job",
    { payment: settled, job: running },
    [whole, byJob(JOB_ID)],
  ],
  [
    "a payment's job that is completed: replayed permanently (a payment is never released)",
    { payment: settled, job: completed, laterMs: 100 * WEEK },
    [whole, REPLAYED],
    [other(whole), REUSED],
  ],
  [
    'the payment is asked before the key: the same payment with another key is payment_reused',
    { payment: settled, job: completed },
    [other({ ...whole, claimStream: `claim-${hex('2')}` }), REUSED],
  ],
  [
    'a request that only resembles that of a payment in refund learns nothing of the refund',
    { payment: refunding },
    [other(whole), REUSED],
  ],
];

const BY_KEY: readonly Rule[] = [
  ...(
    [
      ['in demo', byKey, null, []],
      ['with a new payment', otherPayment, PAYMENT_STREAM, settled],
    ] as const
  ).flatMap(([who, lookup, paymentStream, payment]): Rule[] => {
    const stored = { claim: [keyClaimed({ paymentStream })], payment };
    const job = [...running, attemptSucceeded(), jobCompleted({ completedAt: at(5000) }), receiptSigned()];
    return [
      [
        `${who}, the key's job is completed: replayed; with another request idempotency_conflict`,
        { ...stored, job: completed },
        [lookup, REPLAYED],
        [other(lookup), CONFLICT],
      ],
      [
        `${who}, the key's job runs: idempotency_in_progress; with another request idempotency_conflict`,
        { ...stored, job: running, laterMs: 10 * WEEK },
        [lookup, byJob(JOB_ID)],
        [other(lookup), CONFLICT],
      ],
      [
        `${who}, the key is not free a millisecond less than 7 days after completion`,
        { ...stored, job, laterMs: WEEK + 4999 },
        [lookup, REPLAYED],
      ],
      [
        `${who}, the key is free 7 days after completion, for any request`,
        { ...stored, job, laterMs: WEEK + 5000 },
        [lookup, isNew('retention_over')],
        [other(lookup), isNew('retention_over')],
      ],
    ];
  }),
  [
    'claimed without a payment and never started: any repeat continues under its job id',
    { claim: [keyClaimed({ paymentStream: null })] },
    [byKey, RESUMED],
    [other(byKey), CONFLICT],
  ],
  ...(
    [
      ['reserved', reserved],
      ['unknown', [...reserved, settlementUnknown()]],
      ['settled', settled],
    ] as const
  ).map(
    ([status, payment]): Rule => [
      `a new payment with a key whose own payment is ${status} and whose job never started: that payment is reconciled first, whatever its age`,
      { claim: [keyClaimed()], payment, laterMs: 10 * WEEK },
      [otherPayment, ['held', JOB_ID, status]],
      [other(otherPayment), CONFLICT],
    ],
  ),
  ...(
    [
      ['rejected', paymentRejected(), 'payment_rejected'],
      ['released', paymentReleased(), 'payment_released'],
    ] as const
  ).map(
    ([status, end, reason]): Rule => [
      `a key whose own payment was ${status} may be taken, also where a crash hid its IdempotencyKeyReleased`,
      { claim: [keyClaimed()], payment: [...reserved, end] },
      [otherPayment, isNew(reason)],
      [other(otherPayment), isNew(reason)],
      [whole, isNew(reason)],
    ],
  ),
  [
    'a key whose own payment is in refund may not be taken yet: the refund may be cancelled',
    { claim: [keyClaimed()], payment: refunding },
    [otherPayment, inProgress({ paymentState: 'refunding' })],
    [whole, ['payment_reused', { paymentState: 'refunding' }]],
  ],
  [
    'a key whose own payment was refunded before its job started may be taken',
    { claim: [keyClaimed()], payment: [...refunding, paymentRefunded()] },
    [otherPayment, isNew('payment_released')],
    [whole, ['payment_reused', { paymentState: 'refunded' }]],
  ],
  [
    'a payment whose refund was cancelled resumes its job',
    { claim: [keyClaimed()], payment: [...refunding, refundCancelled()] },
    [whole, RESUMED],
  ],
  [
    'a payment whose refund was cancelled, and another job took the key meanwhile',
    {
      claim: [
        keyClaimed(),
        keyReleased({ reason: 'payment_released' }),
        keyClaimed({ jobId: OTHER_JOB_ID, paymentStream: null }),
      ],
      payment: [...refunding, refundCancelled()],
    },
    [whole, inProgress(null)],
  ],
  [
    "a key whose payment was reserved again for another job: the claim's own reservation has ended",
    {
      claim: [keyClaimed()],
      payment: [
        ...reserved,
        paymentRejected(),
        paymentReserved({ jobId: OTHER_JOB_ID, fingerprint: hex('0') }),
      ],
    },
    [otherPayment, isNew('payment_released')],
  ],
  [
    "a key ends only with its own payment: another payment's end frees nothing",
    { claim: [keyClaimed()], payment: reserved, theirPayment: [...reserved, paymentRejected()] },
    [{ ...whole, paymentStream: THEIRS }, ['held', JOB_ID, 'reserved']],
  ],
  [
    "a key whose job has started is not freed by its payment's end: that job stands",
    {
      claim: [keyClaimed()],
      payment: [...reserved, paymentRejected({ evidence: 'operator' })],
      job: running,
    },
    [otherPayment, byJob(JOB_ID)],
  ],
];

/** A payment whose key another job holds. */
const KEY_LOST: readonly Rule[] = (
  [
    ['unknown', [...reserved, settlementUnknown()]],
    ['retried', [...reserved, settlementUnknown(), settlementRetried()]],
    ['settled', settled],
    ['settled after it was rejected', [...reserved, paymentRejected(), paymentSettled()]],
  ] as const
).flatMap(([status, payment]): Rule[] => {
  const lost = { payment, claim: [theirs], theirPayment: reserved };
  return [
    [
      `${status}, and the key is by now that of another job, which has not started: idempotency_in_progress`,
      lost,
      [whole, inProgress(null)],
    ],
    [
      `${status}, and the key is by now that of another job, which runs: idempotency_in_progress by that job`,
      { ...lost, theirJob: running },
      [whole, byJob(OTHER_JOB_ID)],
    ],
    [
      `${status}, and the key is by now another's for another request: idempotency_conflict`,
      { ...lost, claim: [keyClaimed({ ...theirs.data, ...otherRequest })] },
      [whole, CONFLICT],
    ],
    [
      `${status}, and the key is by now that of a completed job: idempotency_conflict`,
      { ...lost, theirJob: completed },
      [whole, CONFLICT],
    ],
    [
      `${status}, and the key's other holder has ended by its time: it resumes, taking the key`,
      { ...lost, theirJob: completed, laterMs: WEEK + 60_000 },
      [whole, [...RESUMED, 'retention_over']],
    ],
    [
      `${status}, and the key's other holder has ended with its payment: it resumes, taking the key`,
      { ...lost, theirPayment: [...reserved, paymentRejected()] },
      [whole, [...RESUMED, 'payment_rejected']],
    ],
  ];
});

for (const [rule, stored, ...asked] of [
  ...BY_PAYMENT,
  ...BY_KEY,
  ...KEY_LOST,
  [
    'reserved, and the key is another job’s: it continues, to give itself up',
    { payment: reserved, claim: [theirs], theirPayment: settled },
    [whole, RESUMED],
  ] satisfies Rule,
])
  test(rule, async () => {
    const it = await holding(stored);
    for (const [lookup, expected] of asked) await knows(it, lookup, expected);
  });

test('what is new is appended at the revision that was read, also after an end', async () => {
  for (const [stored, lookup, payment, claim] of [
    [{}, whole, 'no_stream', 'no_stream'],
    [{ payment: [...reserved, paymentRejected()] }, other(whole), 1n, 'no_stream'],
    [{ payment: [...reserved, paymentReleased()] }, other(whole), 1n, 'no_stream'],
    [{ claim: [keyClaimed(), keyReleased()] }, byKey, undefined, 1n],
  ] as const) {
    const known = await findKnown((await holding(stored)).deps, lookup);
    assert.ok(known.kind === 'new' && known.streams.release === null);
    assert.deepEqual([known.streams.payment?.expected, known.streams.claim?.expected], [payment, claim]);
  }
});

test('a repeat gets the time of its next try', async () => {
  const it = await holding({ payment: settled, job: running });
  const known = await findKnown(it.deps, whole);
  assert.ok(known.kind === 'refused');
  assert.equal(known.refusal.retryAfterSeconds, 2);
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
  await given(it, `job-${JOB_ID}`, ...completed);
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
    await given(it, `job-${JOB_ID}`, ...completed);
    for (const authorization of others) {
      await knows(it, { ...whole, authorization }, ['payment_reused', null]);
    }
    await knows(it, { ...whole, authorization: recorded }, ['completed', JOB_ID]);
  });
}

test('only a copy of the payment can guess: a signed payload that is another closes nothing, one that is equal does', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved(), paymentSettled());
  await given(it, `job-${JOB_ID}`, ...completed);
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
