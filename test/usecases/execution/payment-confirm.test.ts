// A settle call without a conclusive answer is followed on the chain within the call: served in the same call and charged
// once, refused if the chain agrees, or answered 503 when the time is over.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { longestRunMs } from '#src/domain/job/retry.ts';
import { TIMES } from '#src/domain/limits.ts';
import type { SettleAnswer } from '#src/domain/payment/settlement.ts';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import { Cancel } from '#src/lib/time.ts';
import type { Payments } from '#src/ports/payments.ts';
import { presentedPayment } from '#test/support/chain/fakes-payments.ts';
import { nonceUsed } from '#test/support/chain/memory-payments.ts';
import { execute } from '#test/support/given/given-call.ts';
import {
  PAYMENT_STREAM,
  settlementRetried,
  settlementUnknown,
  T0,
} from '#test/support/given/given-events.ts';
import {
  isUnconfirmed,
  meets,
  outcomeOf,
  paymentTypes,
  refusalOf,
  rejected,
  unknown,
} from '#test/support/given/given-payment.ts';
import { gate } from '#test/support/log/fakes-log.ts';
import { letPass, quiet } from '#test/support/world/fakes.ts';
import { given, shared, type World, world } from '#test/support/world/fakes-world.ts';

const HASH = `0x${'e'.repeat(64)}`;
const pending: SettleAnswer = { outcome: 'unknown', cause: 'settlement_pending', transaction: HASH };
const unused: ChainFinding = { outcome: 'unused', chainTimeSeconds: T0 / 1000 };
const unavailable: ChainFinding = { outcome: 'unavailable' };
const paid: ChainFinding = { outcome: 'paid', transaction: HASH };
const WAIT_MS = 30_000;

/** Its calls wait for the chain as long as in production. */
const patient = (changes: Parameters<typeof world>[1] = {}) =>
  world(shared(), { confirmWaitMs: WAIT_MS, ...changes });

const lastEvent = async (it: Pick<World, 'log'>) => (await it.log.readStream(PAYMENT_STREAM)).at(-1);

for (const [why, answer] of [
  ['settlement_pending', pending],
  ['nonce used', nonceUsed],
  ['an answer that was lost', unknown],
] as const) {
  test(`${why}, and the chain shows the transfer five seconds later: served in the same call, charged once`, async () => {
    const it = patient();
    it.payments.scriptSettle(answer);
    it.payments.scriptLookUp(unused, unavailable, unused, unused, unused, paid);
    const served = await letPass(it.clock, execute(it));
    assert.ok(served.kind === 'ran');
    assert.equal(served.execution.payment?.transaction, HASH);
    assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'SettlementUnknown', 'PaymentSettled']);
    assert.equal((await lastEvent(it))?.data.evidence, 'chain');
    assert.deepEqual([it.payments.calls.settle, it.payments.calls.lookUp], [1, 6]);
    assert.equal(it.clock.monotonic(), 5000);
    assert.deepEqual(it.unconfirmed.waiting(presentedPayment().payer, ''), []);
  });
}

test('found at the first look: nothing but the settlement is recorded', async () => {
  const it = patient();
  it.payments.scriptSettle(pending);
  it.payments.scriptLookUp(paid);
  assert.equal(outcomeOf(await execute(it)), 'ran');
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'PaymentSettled']);
});

test('the transaction hash is durable before the first pause, and every look-up begins with it', async () => {
  const asked: (string | null | undefined)[] = [];
  const it = patient();
  const lookUp: Payments['lookUp'] = async (_payment, options) => {
    asked.push(options?.transaction);
    return unused;
  };
  const deps = { ...it.deps, payments: { ...it.payments, lookUp } };
  it.payments.scriptSettle(pending);
  const calling = execute({ deps });
  await quiet();
  assert.deepEqual(
    [(await lastEvent(it))?.type, (await lastEvent(it))?.data.transaction],
    ['SettlementUnknown', HASH],
  );
  await assert.rejects(letPass(it.clock, calling), isUnconfirmed);
  // A later call knows it from the log.
  it.payments.scriptSettle(unknown);
  await assert.rejects(letPass(it.clock, execute({ deps })), isUnconfirmed);
  assert.deepEqual(new Set(asked), new Set([HASH]));
});

test('never seen on the chain: 503 after 30 s with one event, and the payment counts as unconfirmed', async () => {
  const it = patient();
  it.payments.scriptSettle(pending);
  await assert.rejects(letPass(it.clock, execute(it)), isUnconfirmed);
  assert.deepEqual([it.clock.monotonic(), it.payments.calls.lookUp], [WAIT_MS, 31]);
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'SettlementUnknown']);
  assert.deepEqual(it.unconfirmed.waiting(presentedPayment().payer, ''), [PAYMENT_STREAM]);
  assert.equal(it.slots.inFlight(), 0);
});

for (const [step, finding, reason] of [
  ['first', { outcome: 'cancelled' }, 'authorization_cancelled'],
  ['retry', { outcome: 'spent_elsewhere' }, 'authorization_spent_elsewhere'],
] as const) {
  test(`nonce used, to the ${step} call, and on chain ${finding.outcome}: rejected, 402, no free service`, async () => {
    const it = step === 'first' ? world() : await meets(settlementUnknown());
    if (step === 'retry') it.payments.scriptLookUp(unavailable);
    it.payments.scriptSettle(nonceUsed);
    it.payments.scriptLookUp(finding);
    const { refused, details } = await refusalOf(it);
    assert.deepEqual([refused, details], ['payment_required', { reason }]);
    assert.equal(it.outbound.sent.length, 0);
  });
}

// ── a final refusal is believed only if the chain agrees ────────────────────────────────────────────────

test('the money moved, and the facilitator answers a final refusal: served, charged once', async () => {
  const it = world();
  it.payments.scriptSettle((payment) => {
    it.payments.move(payment);
    return rejected;
  });
  assert.equal(outcomeOf(await execute(it)), 'ran');
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'PaymentSettled']);
  assert.deepEqual([it.payments.ledger.size, it.outbound.sent.length], [1, 1]);
});

test('a final refusal while the node does not answer: no 402 before it agrees', async () => {
  const it = patient();
  it.payments.scriptSettle(rejected);
  it.payments.scriptLookUp(unavailable, unavailable, unused);
  assert.equal(outcomeOf(await letPass(it.clock, execute(it))), 'payment_required');
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'SettlementUnknown', 'PaymentRejected']);
  const down = patient();
  down.payments.scriptSettle(rejected);
  down.payments.scriptLookUp(...Array.from({ length: 31 }, () => unavailable));
  await assert.rejects(letPass(down.clock, execute(down)), isUnconfirmed);
});

test('a final refusal, and another call retried while the node did not answer: it no longer counts', async () => {
  const it = patient();
  it.payments.scriptSettle(rejected);
  it.payments.scriptLookUp(unavailable, async () => {
    await given(it, PAYMENT_STREAM, settlementRetried());
    return unused;
  });
  await assert.rejects(letPass(it.clock, execute(it)), isUnconfirmed);
  assert.equal((await paymentTypes(it)).includes('PaymentRejected'), false);
});

test('a final refusal that the chain agreed with, and the money moves all the same: the same header is served, charged once', async () => {
  const it = world();
  it.payments.scriptSettle(rejected);
  assert.equal(outcomeOf(await execute(it)), 'payment_required');
  it.payments.move(presentedPayment());
  assert.equal(outcomeOf(await execute(it)), 'ran');
  assert.equal(outcomeOf(await execute(it)), 'replayed');
  assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'PaymentRejected', 'PaymentSettled']);
  assert.deepEqual([it.payments.calls.settle, it.payments.ledger.size, it.outbound.sent.length], [1, 1, 1]);
});

test('a payment that was rejected and is invalid now: 402, unless the chain shows that it was paid', async () => {
  for (const finding of [unused, unavailable, { outcome: 'cancelled' }] as const) {
    const it = world();
    it.payments.scriptSettle(rejected);
    assert.equal(outcomeOf(await execute(it)), 'payment_required');
    it.payments.scriptVerify({ outcome: 'invalid', reason: 'insufficient_funds' });
    it.payments.scriptLookUp(finding);
    assert.equal(outcomeOf(await execute(it)), 'payment_required');
    assert.deepEqual(await paymentTypes(it), ['PaymentReserved', 'PaymentRejected']);
  }
});

// ── what ends the wait ──────────────────────────────────────────────────────────────────────────────────

test('a stop of the process ends the wait, and the look-up that is under way', async () => {
  const stopping = new Cancel();
  const it = patient({ stopping });
  const { frozen, reached, open } = gate();
  it.payments.scriptSettle(pending);
  it.payments.scriptLookUp(unused, unused);
  let signal: { readonly aborted: boolean } | undefined;
  const lookUp: Payments['lookUp'] = (payment, options) => {
    signal = options?.signal;
    return it.payments.calls.lookUp < 2 ? it.payments.lookUp(payment) : frozen(async () => unavailable);
  };
  const calling = execute({ deps: { ...it.deps, payments: { ...it.payments, lookUp } } });
  const ended = assert.rejects(calling, isUnconfirmed);
  await letPass(it.clock, reached);
  stopping.abort();
  assert.equal(signal?.aborted, true);
  open();
  await ended;
  assert.equal(it.clock.monotonic(), 2000);
});

for (const [attempts, timeoutMs] of [
  [1, 1000],
  [3, 12_000],
] as const) {
  test(`the wait leaves ${attempts} attempts of ${timeoutMs} ms their time before the response deadline`, async () => {
    const request = { retry: { attempts, backoffMs: 5000 }, timeoutMs };
    const latest = TIMES.responseDeadlineMs - longestRunMs(attempts, timeoutMs);
    const it = patient({ confirmWaitMs: 60_000 });
    const settling = 40_000;
    it.payments.scriptSettle(async () => {
      it.clock.advance(settling);
      return pending;
    });
    await assert.rejects(letPass(it.clock, execute(it, { request })), isUnconfirmed);
    const ended = it.clock.monotonic();
    assert.ok(ended <= Math.min(latest, settling + 60_000) && ended > latest - 15_000, `${ended} ms`);
    assert.equal(it.outbound.sent.length, 0);
  });
}

test('a settle call that left too little time for the attempts: one look, then 503', async () => {
  const it = patient();
  it.payments.scriptSettle(async () => {
    it.clock.advance(100_000);
    return pending;
  });
  await assert.rejects(letPass(it.clock, execute(it)), isUnconfirmed);
  assert.deepEqual([it.clock.monotonic(), it.payments.calls.lookUp], [100_000, 1]);
});

test('the response deadline passes while the payment is being settled: 503 payment_unconfirmed; the same header gets the one call', async () => {
  const it = patient();
  const { frozen, reached, open } = gate();
  it.payments.scriptSettle((payment) =>
    frozen(async () => {
      it.payments.move(payment);
      return pending;
    }),
  );
  const calling = execute(it);
  await reached;
  await assert.rejects(letPass(it.clock, calling), (error) => {
    assert.match(String(error), /same payment header/);
    return isUnconfirmed(error);
  });
  assert.equal(it.clock.monotonic(), TIMES.responseDeadlineMs);
  open();
  await quiet();
  assert.equal(outcomeOf(await execute(it)), 'replayed');
  assert.deepEqual([it.payments.ledger.size, it.outbound.sent.length, it.slots.inFlight()], [1, 1, 0]);
  assert.deepEqual(it.logger.lines, []);
});
