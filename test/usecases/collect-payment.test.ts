import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault } from '#src/domain/refusal.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import type { Settled } from '#src/ports/payments.ts';
import { collectPayment } from '#src/usecases/collect-payment.ts';
import { loadClaim, loadPayment } from '#src/usecases/journal.ts';
import { letPass, presentedPayment, quiet } from '#test/support/fakes.ts';
import { afterOthers, gate, lostAnswer, unavailable } from '#test/support/fakes-log.ts';
import {
  collect,
  execute,
  given,
  type PaidCall,
  shared,
  typesIn,
  type World,
  world,
} from '#test/support/fakes-world.ts';
import {
  at,
  CLAIM_STREAM,
  hex,
  JOB_ID,
  keyClaimed,
  keyReleased,
  OTHER_JOB_ID,
  PAYMENT_STREAM,
  paymentRejected,
  paymentReleased,
  paymentReserved,
  paymentSettled,
  settlementRetried,
  settlementUnknown,
  T0,
} from '#test/support/given-events.ts';

const CLOSING = 'AttemptMade+JobCompleted+ReceiptSigned';
const WATCH = 45_000;
const transaction = `0x${'1'.padStart(64, '0')}`;
const unknown: Settled = { outcome: 'unknown', cause: 'timeout' };
const rejected: Settled = { outcome: 'rejected', reason: 'insufficient_funds' };

const isUnconfirmed = (error: unknown) =>
  error instanceof Fault && error.code === 'payment_unconfirmed' && (error.retryAfterSeconds ?? 0) > 0;
const paymentTypes = (it: Pick<World, 'log'>) => typesIn(it, PAYMENT_STREAM);
/** One ran; all others wait for it, or replay it. */
function assertOneRan(answers: readonly Parameters<typeof refusalOf>[0][]): void {
  const outcomes = answers.map(refusalOf);
  assert.equal(outcomes.filter((outcome) => outcome === 'ran').length, 1);
  const others = new Set(outcomes.filter((outcome) => outcome !== 'ran'));
  for (const outcome of others)
    assert.ok(outcome === 'idempotency_in_progress' || outcome === 'completed', String(outcome));
}
const refusalOf = (answer: { readonly kind: string; readonly refusal?: { readonly refused: string } }) =>
  answer.kind === 'refused' ? answer.refusal?.refused : answer.kind;

/** A process that meets a payment in the middle of another's settlement. */
async function meets(...events: Parameters<typeof given>[2][]) {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved({ owner: 'gone' }), ...events);
  await given(it, CLAIM_STREAM, keyClaimed());
  return it;
}

// ── the order ───────────────────────────────────────────────────────────────────────────────────────────

test('reserve, claim the key, settle, record it, start: each durable before the next one acts', async () => {
  const it = world();
  const answer = await execute(it);
  assert.equal(answer.kind, 'ran');
  assert.deepEqual(it.trace, [
    'PaymentReserved',
    'KeyClaimed',
    'settle',
    'PaymentSettled',
    'JobStarted',
    'send',
    CLOSING,
  ]);
});

test('a paid job without a key: four durable waits', async () => {
  const it = world();
  await execute(it, { claimStream: null });
  assert.deepEqual(it.log.stored, ['PaymentReserved', 'PaymentSettled', 'JobStarted', CLOSING]);
});

test('nothing is settled before the key is durably held', async () => {
  const it = world();
  const { frozen, reached, open } = gate();
  it.log.onNext('KeyClaimed', frozen);
  const collecting = collect(it);
  await reached;
  await quiet();
  assert.equal(it.payments.calls.settle, 0);
  open();
  assert.equal((await collecting).kind, 'collected');
});

test('the facts of the payment are those that were reserved and settled, and its signature is nowhere', async () => {
  const it = world();
  const collected = await collect(it);
  const { scheme, network, asset, amount, payTo, payer, payloadHash } = presentedPayment();
  const payment = { scheme, network, asset, amount, payTo, payer, payloadHash, transaction };
  assert.deepEqual(collected, { kind: 'collected', jobId: JOB_ID, payment });
  const [reserved] = await it.log.readStream(PAYMENT_STREAM);
  assert.deepEqual(reserved?.data, paymentReserved({ owner: it.owner }).data);
  const { carried } = presentedPayment();
  assert.doesNotMatch(
    JSON.stringify(it.log.events.map(({ data, metadata }) => ({ data, metadata }))),
    /in memory only/,
  );
  assert.match(JSON.stringify(carried), /in memory only/);
});

test('without a payment (demo): the key is claimed and nothing else', async () => {
  const it = world();
  assert.deepEqual(await collect(it, { presented: null }), {
    kind: 'collected',
    payment: null,
    jobId: JOB_ID,
  });
  assert.deepEqual(it.trace, ['KeyClaimed']);
  assert.deepEqual(await collect(world(it.common), { presented: null, claimStream: null }), {
    kind: 'collected',
    payment: null,
    jobId: JOB_ID,
  });
  assert.deepEqual(it.trace, ['KeyClaimed']);
});

// ── what the settle call answers ────────────────────────────────────────────────────────────────────────

test('a terminal no to the first call: PaymentRejected, KeyReleased, 402 with its reason', async () => {
  const it = world();
  it.payments.scriptSettle(rejected);
  const answer = await collect(it);
  assert.ok(answer.kind === 'refused');
  assert.equal(answer.refusal.refused, 'payment_required');
  assert.deepEqual(answer.refusal.details, { reason: 'insufficient_funds' });
  assert.deepEqual(it.trace, ['PaymentReserved', 'KeyClaimed', 'settle', 'PaymentRejected', 'KeyReleased']);
});

test('after a rejection the same authorization may be reserved anew, and the key is free', async () => {
  const it = world();
  it.payments.scriptSettle(rejected);
  await collect(it);
  assert.equal((await execute(it, { jobId: OTHER_JOB_ID })).kind, 'ran');
  assert.equal(it.payments.calls.settle, 2);
  assert.deepEqual(await paymentTypes(it), [
    'PaymentReserved',
    'PaymentRejected',
    'PaymentReserved',
    'PaymentSettled',
  ]);
  assert.deepEqual(await typesIn(it, CLAIM_STREAM), ['KeyClaimed', 'KeyReleased', 'KeyClaimed']);
});

test('a crash hid the KeyReleased of a rejected payment: whoever comes next releases and claims in one append', async () => {
  const it = world();
  it.payments.scriptSettle(rejected);
  it.log.onNext('KeyReleased', unavailable);
  assert.equal(refusalOf(await collect(it)), 'payment_required');
  assert.deepEqual(
    it.logger.lines.map(({ level }) => level),
    ['warn'],
  );
  const other = presentedPayment({ hash: hex('4'), nonce: '0x4' });
  const collected = await collect(it, {
    jobId: OTHER_JOB_ID,
    presented: other,
    paymentStream: `payment-${hex('4')}`,
  });
  assert.equal(collected.kind, 'collected');
  assert.deepEqual(it.log.stored.slice(2), [
    'PaymentRejected',
    'PaymentReserved',
    'KeyReleased+KeyClaimed',
    'PaymentSettled',
  ]);
});

test('an answer that says neither yes nor no: SettlementUnknown, 503 payment_unconfirmed, never a 402', async () => {
  const it = world();
  it.payments.scriptSettle(unknown);
  await assert.rejects(collect(it), isUnconfirmed);
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'SettlementUnknown']);
  assert.deepEqual(await typesIn(it, CLAIM_STREAM), ['KeyClaimed']);
});

test('unknown, not settled: the same payment resumes at once, under its own job, charged once', async () => {
  const it = world();
  it.payments.scriptSettle(unknown);
  await assert.rejects(collect(it), isUnconfirmed);
  const collected = await collect(world(it.common), { jobId: OTHER_JOB_ID });
  assert.deepEqual([collected.kind, 'jobId' in collected && collected.jobId], ['collected', JOB_ID]);
  assert.deepEqual(it.trace.slice(2), [
    'settle',
    'SettlementUnknown',
    'lookUp',
    'SettlementRetried',
    'settle',
    'PaymentSettled',
  ]);
  assert.equal(it.payments.ledger.size, 1);
});

test('settled, answer lost: nonce used on the retry counts as paid, evidence nonce_consumed, no transaction', async () => {
  const it = world();
  it.payments.scriptSettle((payment) => {
    it.payments.move(payment);
    return unknown;
  });
  await assert.rejects(collect(it), isUnconfirmed);
  const collected = await collect(it);
  assert.ok(collected.kind === 'collected');
  assert.equal(collected.payment?.transaction, null);
  const last = (await it.log.readStream(PAYMENT_STREAM)).at(-1);
  assert.deepEqual(
    [last?.type, last?.data.evidence, last?.data.transaction],
    ['PaymentSettled', 'nonce_consumed', null],
  );
  assert.equal(it.payments.ledger.size, 1);
});

test('a terminal no to a later call stays unknown: never a fresh 402 for a payment that may have moved', async () => {
  const it = await meets(settlementUnknown());
  it.payments.scriptSettle(rejected, rejected);
  for (let i = 0; i < 2; i++) await assert.rejects(collect(it), isUnconfirmed);
  assert.deepEqual((await paymentTypes(it)).slice(2), [
    'SettlementRetried',
    'SettlementUnknown',
    'SettlementRetried',
    'SettlementUnknown',
  ]);
});

test('a settled payment whose job never started: collected at once, nobody is asked', async () => {
  const it = await meets(paymentSettled());
  const collected = await collect(it);
  assert.ok(collected.kind === 'collected');
  assert.equal(collected.payment?.transaction, paymentSettled().data.transaction);
  assert.deepEqual(it.payments.calls, { verify: 0, settle: 0, lookUp: 0 });
});

// ── what the chain says ─────────────────────────────────────────────────────────────────────────────────

test('unknown, and the chain shows the transfer: settled by that evidence, not settled again', async () => {
  const it = await meets(settlementUnknown());
  it.payments.scriptLookUp({ outcome: 'paid', transaction: '0xseen' });
  const collected = await collect(it);
  assert.ok(collected.kind === 'collected');
  assert.equal(collected.payment?.transaction, '0xseen');
  assert.equal(it.payments.calls.settle, 0);
  const last = (await it.log.readStream(PAYMENT_STREAM)).at(-1);
  assert.deepEqual([last?.type, last?.data.evidence], ['PaymentSettled', 'chain']);
});

for (const [why, finding, reason] of [
  ['cancelled', { outcome: 'cancelled' }, 'authorization_cancelled'],
  [
    'unused 61 s after validBefore',
    { outcome: 'unused', chainTimeSeconds: T0 / 1000 + 120 + 61 },
    'unused_after_expiry',
  ],
] as const) {
  test(`unknown, and on chain ${why}: rejected, the key released, 402`, async () => {
    const it = await meets(settlementUnknown());
    it.payments.scriptLookUp(finding);
    const answer = await collect(it);
    assert.ok(answer.kind === 'refused');
    assert.deepEqual([answer.refusal.refused, answer.refusal.details], ['payment_required', { reason }]);
    assert.equal(it.payments.calls.settle, 0);
    assert.deepEqual((await typesIn(it, CLAIM_STREAM)).at(-1), 'KeyReleased');
  });
}

test('unknown, and on chain unused but still valid: it is settled', async () => {
  const it = await meets(settlementUnknown());
  it.payments.scriptLookUp({ outcome: 'unused', chainTimeSeconds: T0 / 1000 + 120 + 60 });
  assert.equal((await collect(it)).kind, 'collected');
  assert.equal(it.payments.calls.settle, 1);
});

test('nonce used, to the first call, and nobody to ask: it went elsewhere, 402', async () => {
  const it = world();
  it.payments.scriptSettle({ outcome: 'nonce_used' });
  assert.equal(refusalOf(await collect(it)), 'payment_required');
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'PaymentRejected']);
});

test('nonce used, to the first call, and the chain shows the transfer to us: settled by that evidence', async () => {
  const it = world();
  it.payments.scriptSettle({ outcome: 'nonce_used' });
  it.payments.scriptLookUp({ outcome: 'paid', transaction: '0xseen' });
  const collected = await collect(it);
  assert.ok(collected.kind === 'collected');
  assert.equal(collected.payment?.transaction, '0xseen');
});

for (const step of ['first', 'retry'] as const) {
  test(`nonce used, to the ${step} call, and the chain shows a cancellation: rejected, 402, no free service`, async () => {
    const it = step === 'first' ? world() : await meets(settlementUnknown());
    if (step === 'retry') it.payments.scriptLookUp({ outcome: 'unavailable' });
    it.payments.scriptSettle({ outcome: 'nonce_used' });
    it.payments.scriptLookUp({ outcome: 'cancelled' });
    const answer = await collect(it);
    assert.ok(answer.kind === 'refused');
    assert.deepEqual(answer.refusal.details, { reason: 'authorization_cancelled' });
  });
}

// ── somebody else's settlement ──────────────────────────────────────────────────────────────────────────

for (const [status, events] of [
  ['reserved', []],
  ['retried', [settlementUnknown(), settlementRetried({ owner: 'gone' })]],
] as const) {
  test(`${status} by another and younger than 45 s by our own watch: 409 idempotency_in_progress, nothing is settled`, async () => {
    const it = await meets(...events);
    const before = it.log.events.length;
    for (const wait of [0, WATCH - 1]) {
      it.clock.advance(wait);
      const answer = await collect(it);
      assert.ok(answer.kind === 'refused');
      assert.equal(answer.refusal.refused, 'idempotency_in_progress');
      assert.equal(answer.refusal.retryAfterSeconds, 2);
    }
    assert.equal(it.payments.calls.settle, 0);
    assert.equal(it.log.events.length, before);
  });

  test(`${status} by another for 45 s: taken over, the retry recorded before it acts`, async () => {
    const it = await meets(...events);
    await collect(it);
    it.clock.advance(WATCH);
    assert.equal((await collect(it)).kind, 'collected');
    assert.deepEqual(it.trace.slice(-4), ['lookUp', 'SettlementRetried', 'settle', 'PaymentSettled']);
  });
}

test('a wall clock an hour ahead makes no settlement look old', async () => {
  const it = await meets();
  await collect(it);
  it.clock.skew(3_600_000);
  assert.equal(refusalOf(await collect(it)), 'idempotency_in_progress');
});

test('a reserver that was frozen before its settle call, while another took over: it does not settle as well', async () => {
  const it = world();
  const { frozen, reached, open } = gate();
  it.log.onNext('KeyClaimed', async (store) => {
    const answer = await store();
    await frozen(async () => null);
    return answer;
  });
  const late = collect(it);
  await reached;
  const other = world(it.common);
  await collect(other);
  other.clock.advance(WATCH);
  const held = gate();
  it.payments.scriptSettle(async (payment) => {
    await held.frozen(async () => null);
    return it.payments.move(payment);
  });
  const takingOver = collect(other);
  await held.reached;
  open();
  assert.equal(refusalOf(await late), 'idempotency_in_progress');
  assert.equal(it.payments.calls.settle, 1);
  held.open();
  assert.equal((await takingOver).kind, 'collected');
});

test('a resumer claimed the key before the reserver did: the reserver goes on, its settle call is the first', async () => {
  const it = world();
  it.log.onNext(
    'KeyClaimed',
    afterOthers(async () => {
      assert.equal(refusalOf(await collect(world(it.common))), 'idempotency_in_progress');
    }),
  );
  it.payments.scriptSettle(rejected);
  assert.equal(refusalOf(await collect(it)), 'payment_required');
  assert.equal(it.payments.calls.settle, 1);
});

// ── races ───────────────────────────────────────────────────────────────────────────────────────────────

test('20 calls with one payment at once, on 4 processes: one settlement, one job, one call, the rest 409', async () => {
  const common = shared();
  const them = Array.from({ length: 4 }, () => world(common));
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => execute(them[i % 4] ?? world(common), { jobId: `job_${i}` })),
  );
  assertOneRan(answers);
  assert.equal(common.payments.calls.settle, 1);
  assert.equal(
    them.reduce((sum, { outbound }) => sum + outbound.sent.length, 0),
    1,
  );
  assert.deepEqual(await paymentTypes(them[0] as World), ['PaymentReserved', 'PaymentSettled']);
});

test('20 retries of an unknown payment at once: one settlement, one job, one call', async () => {
  const first = world();
  first.payments.scriptSettle(unknown);
  await assert.rejects(execute(first), isUnconfirmed);
  const them = Array.from({ length: 4 }, () => world(first.common));
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => execute(them[i % 4] ?? first)));
  assertOneRan(answers);
  assert.equal(first.payments.calls.settle, 2);
  assert.equal(first.payments.ledger.size, 1);
  assert.equal(
    them.reduce((sum, { outbound }) => sum + outbound.sent.length, 0),
    1,
  );
});

test('20 calls with one key, each with its own payment: one settlement, the losers release theirs and are not charged', async () => {
  const common = shared();
  const call = (i: number): PaidCall => {
    const hash = i.toString(16).padStart(64, '0');
    return {
      jobId: `job_${i}`,
      presented: presentedPayment({ hash, nonce: `0x${i}` }),
      paymentStream: `payment-${hash}`,
    };
  };
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => execute(world(common), call(i))));
  assertOneRan(answers);
  assert.equal(common.payments.calls.settle, 1);
  const ends = new Set(
    common.log.events.filter(({ stream }) => stream.startsWith('payment-')).map(({ type }) => type),
  );
  assert.deepEqual(ends, new Set(['PaymentReserved', 'PaymentReleased', 'PaymentSettled']));
});

test('the key went to another between look-up and claim: PaymentReleased names the winner, nothing is settled', async () => {
  const it = world();
  const winner = keyClaimed({ jobId: OTHER_JOB_ID, paymentStream: `payment-${hex('4')}` });
  it.log.onNext(
    'KeyClaimed',
    afterOthers(async () => {
      await given(it, `payment-${hex('4')}`, paymentReserved({ jobId: OTHER_JOB_ID }));
      await given(it, CLAIM_STREAM, winner);
    }),
  );
  assert.equal(refusalOf(await collect(it)), 'idempotency_in_progress');
  assert.equal(it.payments.calls.settle, 0);
  const last = (await it.log.readStream(PAYMENT_STREAM)).at(-1);
  assert.deepEqual(
    [last?.type, last?.data],
    ['PaymentReleased', paymentReleased({ releasedAt: at(0) }).data],
  );
});

test('a reservation that never held its key is released when it comes back, and may be reserved anew', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved({ owner: 'gone' }));
  await given(
    it,
    CLAIM_STREAM,
    keyClaimed({ jobId: OTHER_JOB_ID, paymentStream: null }),
    keyReleased({ jobId: OTHER_JOB_ID }),
  );
  await given(
    it,
    CLAIM_STREAM,
    keyClaimed({ jobId: OTHER_JOB_ID, fingerprint: hex('0'), paymentStream: `payment-${hex('4')}` }),
  );
  assert.equal(refusalOf(await collect(it)), 'idempotency_conflict');
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'PaymentReleased']);
  assert.equal((await collect(it, { claimStream: null, jobId: 'job_new' })).kind, 'collected');
  assert.deepEqual((await paymentTypes(it)).slice(2), ['PaymentReserved', 'PaymentSettled']);
});

test('a key lost in demo: look again, and nothing is collected', async () => {
  const it = world();
  await given(it, CLAIM_STREAM, keyClaimed({ jobId: OTHER_JOB_ID, paymentStream: null }));
  const claim = await loadClaim(it.log, CLAIM_STREAM);
  const asked = { fingerprint: hex('f'), claimStream: CLAIM_STREAM, paymentStream: null, presented: null };
  const streams = { payment: null, claim, release: null };
  const answer = await collectPayment(it.deps, { ...asked, jobId: JOB_ID, streams, reservedHere: false });
  assert.deepEqual(answer, { kind: 'again' });
});

for (const [why, payment] of [
  ['that is settled', [paymentReserved(), paymentSettled()]],
  ['of another job', [paymentReserved({ jobId: OTHER_JOB_ID })]],
  ['that has ended', [paymentReserved(), paymentRejected()]],
] as const) {
  test(`a payment ${why} is never released for a lost key`, async () => {
    const it = world();
    await given(it, CLAIM_STREAM, keyClaimed({ jobId: 'job_holder' }));
    await given(it, PAYMENT_STREAM, ...payment);
    const claim = await loadClaim(it.log, CLAIM_STREAM);
    const streams = { payment: await loadPayment(it.log, PAYMENT_STREAM), claim, release: null };
    const asked = { fingerprint: hex('f'), claimStream: CLAIM_STREAM, paymentStream: PAYMENT_STREAM };
    const presented = why === 'that has ended' ? null : presentedPayment();
    const answer = await collectPayment(it.deps, {
      ...asked,
      presented,
      jobId: JOB_ID,
      streams,
      reservedHere: false,
    });
    assert.deepEqual(answer, { kind: 'again' });
    assert.equal((await paymentTypes(it)).includes('PaymentReleased'), false);
    assert.equal(it.payments.calls.settle, 0);
  });
}

test('the payment was given up and reserved anew for another job meanwhile: settled only after it was reserved for ours again', async () => {
  const it = world();
  it.log.onNext('KeyClaimed', async (store) => {
    const answer = await store();
    await given(it, PAYMENT_STREAM, paymentReleased(), paymentReserved({ jobId: OTHER_JOB_ID }));
    return answer;
  });
  assert.equal((await collect(it)).kind, 'collected');
  assert.deepEqual((await paymentTypes(it)).slice(3), [
    'PaymentReleased',
    'PaymentReserved',
    'PaymentSettled',
  ]);
  assert.equal(it.payments.calls.settle, 1);
});

test('a rejected payment whose key another has taken meanwhile: the new claim is left alone', async () => {
  const it = world();
  it.payments.scriptSettle(rejected);
  it.log.onNext('PaymentRejected', async (store) => {
    const answer = await store();
    await given(it, CLAIM_STREAM, keyReleased(), keyClaimed({ jobId: OTHER_JOB_ID }));
    return answer;
  });
  assert.equal(refusalOf(await collect(it)), 'payment_required');
  assert.deepEqual(await typesIn(it, CLAIM_STREAM), ['KeyClaimed', 'KeyReleased', 'KeyClaimed']);
});

// ── a settlement fact is never dropped ──────────────────────────────────────────────────────────────────

const whileSettling = (it: World, answer: Settled, act: () => Promise<unknown>) =>
  it.payments.scriptSettle(async (payment) => {
    await act();
    return answer.outcome === 'settled' ? it.payments.move(payment) : answer;
  });

test('settled, and another retried meanwhile: the fact follows the retry', async () => {
  const it = world();
  whileSettling(it, { outcome: 'settled', transaction }, () =>
    given(it, PAYMENT_STREAM, settlementRetried()),
  );
  assert.equal((await collect(it)).kind, 'collected');
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'SettlementRetried', 'PaymentSettled']);
});

test('settled, and another wrote between reading and appending: read again and appended', async () => {
  const it = world();
  it.log.onNext(
    'PaymentSettled',
    afterOthers(() => given(it, PAYMENT_STREAM, settlementUnknown())),
  );
  assert.equal((await collect(it)).kind, 'collected');
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'SettlementUnknown', 'PaymentSettled']);
  assert.equal(it.payments.calls.settle, 1);
});

test('a terminal no, and another retried meanwhile: ours was not the only call, so it no longer counts', async () => {
  for (const answer of [rejected, { outcome: 'nonce_used' } as const]) {
    const it = world();
    whileSettling(it, answer, () => given(it, PAYMENT_STREAM, settlementRetried()));
    if (answer.outcome === 'rejected') await assert.rejects(collect(it), isUnconfirmed);
    else assert.equal((await collect(it)).kind, 'collected');
    assert.equal((await paymentTypes(it)).includes('PaymentRejected'), false);
  }
});

test('a terminal no that conflicts with a retry at its own append no longer counts either', async () => {
  const it = world();
  it.payments.scriptSettle(rejected);
  it.log.onNext(
    'PaymentRejected',
    afterOthers(() => given(it, PAYMENT_STREAM, settlementRetried())),
  );
  await assert.rejects(collect(it), isUnconfirmed);
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'SettlementRetried', 'SettlementUnknown']);
});

test('Settled stands: nothing is appended after it, and its facts are the answer', async () => {
  const it = world();
  whileSettling(it, unknown, () => given(it, PAYMENT_STREAM, paymentSettled()));
  const collected = await collect(it);
  assert.ok(collected.kind === 'collected');
  assert.equal(collected.payment?.transaction, paymentSettled().data.transaction);
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'PaymentSettled']);
});

test('the log goes away just when the money has moved: the fact waits for it, however long', async () => {
  const it = world();
  whileSettling(it, { outcome: 'settled', transaction }, async () => it.log.setAway(true));
  const collecting = collect(it);
  for (let waited = 0; waited < 600_000; waited += 10_000) {
    await quiet();
    it.clock.advance(10_000);
  }
  it.log.setAway(false);
  assert.equal((await letPass(it.clock, collecting)).kind, 'collected');
  assert.equal(it.payments.calls.settle, 1);
});

test("PaymentSettled's answer is lost: repeated with its own ids, one fact", async () => {
  const it = world();
  it.log.onNext('PaymentSettled', lostAnswer);
  it.log.onNext('PaymentSettled', unavailable);
  assert.equal((await letPass(it.clock, collect(it))).kind, 'collected');
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'PaymentSettled']);
});

// ── the log is away before anything moved ───────────────────────────────────────────────────────────────

for (const [type, call] of [
  ['PaymentReserved', {}],
  ['KeyClaimed', {}],
  ['KeyClaimed', { presented: null }],
] as const) {
  test(`the log is away at ${type}${'presented' in call ? ' (demo)' : ''}: the caller knows within seconds, nothing is settled, the same call resumes`, async () => {
    const it = world();
    it.log.onNext(type, async (store) => {
      it.log.setAway(true);
      return store();
    });
    const before = it.clock.monotonic();
    await assert.rejects(letPass(it.clock, collect(it, call)), EventLogUnavailable);
    assert.ok(it.clock.monotonic() - before <= 2000);
    assert.equal(it.payments.calls.settle, 0);
    it.log.setAway(false);
    for (let i = 0; i < 3; i++) {
      it.clock.advance(2000);
      await quiet();
    }
    const other = world(it.common);
    await collect(other, call);
    other.clock.advance(WATCH);
    const collected = await collect(other, { ...call, jobId: OTHER_JOB_ID });
    assert.deepEqual([collected.kind, 'jobId' in collected && collected.jobId], ['collected', JOB_ID]);
    assert.equal(it.payments.ledger.size, 'presented' in call ? 0 : 1);
  });
}
