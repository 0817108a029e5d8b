// The begin of a refund against the call that the payment buys: exactly one of the two wins, whatever their order.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import type { Payments } from '#src/ports/payments.ts';
import { cancelPaymentRefund } from '#src/usecases/payments/begin-refund.ts';
import { balancePayments, listOpenPayments } from '#test/support/given/books.ts';
import { execute } from '#test/support/given/given-call.ts';
import {
  PAYMENT_STREAM,
  paymentReserved,
  paymentSettled,
  refundBegun,
  refundClaimed,
} from '#test/support/given/given-events.ts';
import { outcomeOf, ran, refusalOf } from '#test/support/given/given-payment.ts';
import { begin, refund } from '#test/support/given/given-refund.ts';
import { afterOthers, dies, gate, type Interception } from '#test/support/log/fakes-log.ts';
import { letPass } from '#test/support/world/fakes.ts';
import { given, typesIn, type World, world } from '#test/support/world/fakes-world.ts';

/** Charged, and the process ended before the job started. */
async function unserved(): Promise<World> {
  const dying = world();
  dying.log.onNext('JobStarted', dies('before'));
  await assert.rejects(execute(dying));
  return world(dying.common);
}
const CHARGED = ['PaymentReserved', 'PaymentSettled'];
const paymentTypes = (it: World) => typesIn(it, PAYMENT_STREAM);
const beginSample = (it: World) => begin(it.deps, PAYMENT_STREAM);
const reasonOf = (begun: Awaited<ReturnType<typeof begin>>) =>
  begun.outcome === 'refused' ? begun.reason : begun.outcome;
const sums = async (it: World) => {
  const [row] = await balancePayments(it.log);
  return row && [row.charged, row.served, row.refunded, row.open, row.balanced];
};
const stateOf = async (it: World) => (await listOpenPayments(it.deps))[0]?.state ?? null;

test('a header that is presented after the begin: refused, nothing sent, nothing charged; open in the books', async () => {
  const it = await unserved();
  const begun = await beginSample(it);
  assert.ok(begun.outcome === 'begun');
  assert.deepEqual([begun.payment.payer, begun.isNew], [paymentReserved().data.payer, true]);
  const answer = await refusalOf(it);
  assert.deepEqual([answer.refused, answer.details], ['payment_reused', { paymentState: 'refunding' }]);
  assert.match(answer.message, /refund .* has begun/);
  assert.deepEqual([it.outbound.sent.length, it.payments.calls.settle], [0, 1]);
  assert.deepEqual(await sums(it), ['3000', '0', '0', '3000', true]);
  assert.equal(await stateOf(it), 'refunding');
});

test('cancelled: the same header executes the call, once, without a new charge', async () => {
  const it = await unserved();
  await beginSample(it);
  assert.deepEqual(await cancelPaymentRefund(it.deps, PAYMENT_STREAM), {
    outcome: 'cancelled',
    id: PAYMENT_STREAM,
  });
  assert.equal(outcomeOf(await execute(it)), 'ran');
  assert.deepEqual([it.outbound.sent.length, it.payments.calls.settle], [1, 1]);
  assert.deepEqual(await sums(it), ['3000', '3000', '0', '0', true]);
  assert.equal(reasonOf(await beginSample(it)), 'served');
});

test('start after refund: a job that starts after the begin sends nothing, and the refund holds', async () => {
  const it = await unserved();
  it.log.onNext(
    'JobStarted',
    afterOthers(async () => assert.equal(reasonOf(await beginSample(it)), 'begun')),
  );
  const answer = await ran(it);
  assert.equal(answer.job.errorCategory, 'not_executed');
  assert.equal(it.outbound.sent.length, 0);
  assert.deepEqual(await paymentTypes(it), [...CHARGED, 'RefundBegun']);
  assert.equal(reasonOf(await beginSample(it)), 'begun');
});

test('refund after start: refused while the call runs, and after it was made', async () => {
  const it = await unserved();
  it.log.onNext(
    'JobCompleted',
    afterOthers(async () => assert.equal(reasonOf(await beginSample(it)), 'job_running')),
  );
  assert.equal(outcomeOf(await execute(it)), 'ran');
  assert.equal(reasonOf(await beginSample(it)), 'served');
  assert.equal(it.outbound.sent.length, 1);
  assert.deepEqual(await paymentTypes(it), CHARGED);
});

/** Runs `act` after the append is stored, before its caller learns of it. */
const thenOthers =
  (act: () => Promise<unknown>): Interception =>
  async (store) => {
    const stored = await store();
    await act();
    return stored;
  };

test('a job that was started and had read its payment before the begin was stored: the refund is cancelled', async () => {
  const it = await unserved();
  it.log.onNext(
    'RefundBegun',
    afterOthers(async () => assert.equal(outcomeOf(await execute(it)), 'ran')),
  );
  assert.equal(reasonOf(await beginSample(it)), 'served');
  assert.equal(it.outbound.sent.length, 1);
  assert.deepEqual(await paymentTypes(it), [...CHARGED, 'RefundBegun', 'RefundCancelled']);
  assert.deepEqual(await sums(it), ['3000', '3000', '0', '0', true]);
});

test('the same while the call still runs: the refund waits for the decision of the job, and is cancelled', async () => {
  const it = await unserved();
  const operator = world(it.common);
  const closing = gate();
  it.log.onNext('JobCompleted', closing.frozen);
  const calls: ReturnType<typeof execute>[] = [];
  it.log.onNext(
    'RefundBegun',
    afterOthers(async () => {
      calls.push(execute(it));
      await closing.reached;
    }),
  );
  const before = operator.clock.monotonic();
  const begun = await letPass(operator.clock, begin(operator.deps, PAYMENT_STREAM));
  assert.equal(reasonOf(begun), 'job_running');
  assert.equal(operator.clock.monotonic() - before, 5000, 'the job had time to close without sending');
  closing.open();
  assert.deepEqual((await Promise.all(calls)).map(outcomeOf), ['ran']);
  assert.deepEqual(await paymentTypes(it), [...CHARGED, 'RefundBegun', 'RefundCancelled']);
  assert.deepEqual([it.outbound.sent.length, await sums(it)], [1, ['3000', '3000', '0', '0', true]]);
});

test('both at once: the job is stored before the begin and reads its payment after it: nothing is sent, the refund holds', async () => {
  const it = await unserved();
  const operator = world(it.common);
  const calls: ReturnType<typeof execute>[] = [];
  const beginStored = Promise.withResolvers<void>();
  it.log.onNext(
    'JobStarted',
    thenOthers(() => beginStored.promise),
  );
  it.log.onNext('RefundBegun', async (store) => {
    // The refund has read the job as absent.
    const jobStored = typesStored(it, 'JobStarted');
    calls.push(execute(it));
    await jobStored;
    const stored = await store();
    beginStored.resolve();
    return stored;
  });
  const begun = begin(operator.deps, PAYMENT_STREAM);
  assert.equal(reasonOf(await letPass(operator.clock, begun)), 'begun');
  const answer = await calls[0];
  assert.ok(answer?.kind === 'ran');
  assert.equal(answer.execution.job.errorCategory, 'not_executed');
  assert.equal(it.outbound.sent.length, 0);
  assert.deepEqual(await paymentTypes(it), [...CHARGED, 'RefundBegun'], 'it has waited for the job');
  assert.deepEqual(await sums(it), ['3000', '0', '0', '3000', true]);
});

test('a refund that began before the job started is printed again while the job runs, which has yet to read it and sends nothing', async () => {
  const it = await unserved();
  const operator = world(it.common);
  const acknowledged = Promise.withResolvers<void>();
  it.log.onNext('JobStarted', async (store) => {
    assert.equal(reasonOf(await beginSample(operator)), 'begun');
    const stored = await store();
    await acknowledged.promise;
    return stored;
  });
  const call = execute(it);
  await typesStored(it, 'JobStarted');
  const again = await letPass(operator.clock, beginSample(operator));
  assert.deepEqual([reasonOf(again), 'isNew' in again && again.isNew], ['begun', false]);
  acknowledged.resolve();
  const answer = await call;
  assert.ok(answer.kind === 'ran');
  assert.equal(answer.execution.job.errorCategory, 'not_executed');
  assert.deepEqual(await paymentTypes(it), [...CHARGED, 'RefundBegun']);
  assert.deepEqual([it.outbound.sent.length, await sums(it)], [0, ['3000', '0', '0', '3000', true]]);
});

test('a job that is closed without a request while the refund is cancelled for it: the refund begins again', async () => {
  const it = await unserved();
  const operator = world(it.common);
  const beginStored = Promise.withResolvers<void>();
  const closing = gate();
  it.log.onNext(
    'JobStarted',
    thenOthers(() => beginStored.promise),
  );
  it.log.onNext('JobCompleted', closing.frozen);
  const calls: ReturnType<typeof execute>[] = [];
  it.log.onNext('RefundBegun', async (store) => {
    calls.push(execute(it));
    await typesStored(it, 'JobStarted');
    const stored = await store();
    beginStored.resolve();
    await closing.reached;
    return stored;
  });
  it.log.onNext(
    'RefundCancelled',
    afterOthers(async () => {
      closing.open();
      await Promise.all(calls);
    }),
  );
  const begun = await letPass(operator.clock, beginSample(operator));
  assert.equal(reasonOf(begun), 'begun');
  assert.deepEqual(await paymentTypes(it), [...CHARGED, 'RefundBegun', 'RefundCancelled', 'RefundBegun']);
  assert.deepEqual([it.outbound.sent.length, await sums(it)], [0, ['3000', '0', '0', '3000', true]]);
});

/** Resolves when an event of the type is in the log. */
async function typesStored({ log }: World, type: string): Promise<void> {
  while (!log.events.some((event) => event.type === type)) await new Promise((next) => setImmediate(next));
}

test('a call that was made is refunded on demand only, and stays served until then', async () => {
  const it = await unserved();
  assert.equal(outcomeOf(await execute(it)), 'ran');
  assert.equal(reasonOf(await begin(it.deps, PAYMENT_STREAM, { includeServed: true })), 'begun');
  assert.deepEqual(await sums(it), ['3000', '3000', '0', '0', true]);
  await refund(it.deps, PAYMENT_STREAM, { includeServed: true });
  assert.deepEqual(await sums(it), ['3000', '0', '3000', '0', true]);
  assert.equal(outcomeOf(await execute(it)), 'replayed');
});

test('cancel: refused if no refund has begun, if it is recorded, and if a transaction is claimed for it', async () => {
  const it = await unserved();
  const refused = (reason: string) => ({ outcome: 'refused', id: PAYMENT_STREAM, reason });
  assert.deepEqual(await cancelPaymentRefund(it.deps, PAYMENT_STREAM), refused('not_begun'));
  await refund(it.deps, PAYMENT_STREAM);
  assert.deepEqual(await cancelPaymentRefund(it.deps, PAYMENT_STREAM), refused('already_refunded'));

  const other = world();
  await given(other, PAYMENT_STREAM, paymentReserved(), paymentSettled(), refundBegun());
  const { transaction, network } = refundClaimed().data;
  await given(other, `refund-${network}:${transaction}`, refundClaimed());
  const claimed = { outcome: 'claimed', id: PAYMENT_STREAM, transaction };
  assert.deepEqual(await cancelPaymentRefund(other.deps, PAYMENT_STREAM), claimed);
  assert.deepEqual(await paymentTypes(other), [...CHARGED, 'RefundBegun']);
});

test('begun again while a transaction is claimed for it: its money was sent, so that it is not printed as due', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved(), paymentSettled(), refundBegun());
  const { transaction, network } = refundClaimed().data;
  await given(it, `refund-${network}:${transaction}`, refundClaimed());
  const claimed = { outcome: 'claimed', id: PAYMENT_STREAM, transaction };
  assert.deepEqual(await beginSample(it), claimed);
  assert.deepEqual(await paymentTypes(it), [...CHARGED, 'RefundBegun']);
});

test('cancel at the moment of a claim: the refund begins again, since its money was sent', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved(), paymentSettled(), refundBegun());
  const { transaction, network } = refundClaimed().data;
  it.log.onNext(
    'RefundCancelled',
    afterOthers(() => given(it, `refund-${network}:${transaction}`, refundClaimed())),
  );
  const claimed = { outcome: 'claimed', id: PAYMENT_STREAM, transaction };
  assert.deepEqual(await cancelPaymentRefund(it.deps, PAYMENT_STREAM), claimed);
  assert.deepEqual(await paymentTypes(it), [...CHARGED, 'RefundBegun', 'RefundCancelled', 'RefundBegun']);
});

test('a charge that the chain does not show is not begun: one look-up, with the recorded transaction first', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved(), paymentSettled());
  const asked: unknown[] = [];
  const answers: ChainFinding[] = [{ outcome: 'unused', chainTimeSeconds: 0 }, { outcome: 'unavailable' }];
  const lookUp: Payments['lookUp'] = async ({ nonce }, options) => {
    asked.push([nonce, options?.transaction]);
    return answers.shift() ?? assert.fail();
  };
  assert.equal(reasonOf(await begin(it.deps, PAYMENT_STREAM, { lookUp })), 'not_on_chain');
  assert.equal(reasonOf(await begin(it.deps, PAYMENT_STREAM, { lookUp })), 'chain_unavailable');
  const { nonce } = paymentReserved().data;
  assert.deepEqual(asked, Array(2).fill([nonce, paymentSettled().data.transaction]));
  assert.deepEqual(await paymentTypes(it), CHARGED);
});

test('without a usable answer of the chain, the reason of the operator is recorded', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved(), paymentSettled());
  const lookUp: Payments['lookUp'] = async () => ({ outcome: 'unavailable' });
  const statement = 'A block explorer shows it.';
  assert.equal(reasonOf(await begin(it.deps, PAYMENT_STREAM, { lookUp, statement })), 'begun');
  const last = (await it.log.readStream(PAYMENT_STREAM)).at(-1);
  assert.deepEqual([last?.type, last?.data.statement], ['RefundBegun', statement]);
  // Printed again, also while the node does not answer.
  assert.equal(reasonOf(await begin(it.deps, PAYMENT_STREAM, { lookUp })), 'begun');
});

test('a charge in a block that does not count yet is not begun: its own transaction is looked at', async () => {
  const it = world();
  await given(it, PAYMENT_STREAM, paymentReserved(), paymentSettled());
  const asked: string[] = [];
  const findTransfers = async (transaction: string) => {
    asked.push(transaction);
    return { outcome: 'unconfirmed', blocks: 3 } as const;
  };
  assert.equal(reasonOf(await begin(it.deps, PAYMENT_STREAM, { findTransfers })), 'not_final');
  assert.deepEqual(asked, [paymentSettled().data.transaction]);
  assert.deepEqual(await paymentTypes(it), CHARGED);
  assert.equal(reasonOf(await begin(it.deps, PAYMENT_STREAM)), 'begun');
  assert.equal(reasonOf(await begin(it.deps, PAYMENT_STREAM, { findTransfers })), 'begun');
  assert.equal(asked.length, 1);
});
