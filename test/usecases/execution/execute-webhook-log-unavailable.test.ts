// The log becomes unavailable: before anything is sent, the caller gets an error at once; later, its job continues after
// the answer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EventType } from '#src/domain/events.ts';
import { Fault } from '#src/domain/refusal.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { DEMO, execute, paidWith } from '#test/support/given/given-call.ts';
import { jobStarted } from '#test/support/given/given-events.ts';
import { outcomeOf, replayed } from '#test/support/given/given-payment.ts';
import { newEvent } from '#test/support/given/job-histories.ts';
import { gate } from '#test/support/log/fakes-log.ts';
import { letPass, quiet, succeeding } from '#test/support/world/fakes.ts';
import { audited, given, shared, type World, world } from '#test/support/world/fakes-world.ts';

const ANSWER_BUDGET_MS = 110_000;

/** The fault that a call ends with. */
async function faultOf(it: World, answer: Promise<unknown>): Promise<Fault> {
  const fault = await letPass(it.clock, answer).catch((error: unknown) => error);
  assert.ok(fault instanceof Fault);
  return fault;
}

/** Advances the time, a second at a time. */
async function pass(it: World, seconds: number) {
  for (let i = 0; i < seconds; i++) {
    it.clock.advance(1000);
    await quiet();
  }
}

for (const [mode, changes] of [
  ['paid', {}],
  ['demo', DEMO],
] as const) {
  test(`${mode}, away before anything: event_log_unavailable at once, nothing is asked, settled or sent`, async () => {
    const it = world();
    it.log.setAway(true);
    const fault = await faultOf(it, execute(it, changes));
    assert.deepEqual(
      [fault.code, fault.retryAfterSeconds, fault.details],
      ['event_log_unavailable', 5, undefined],
    );
    assert.match(fault.message, /nothing was sent/);
    assert.equal(/same payment header/.test(fault.message), mode === 'paid');
    assert.deepEqual([it.steps, it.clock.monotonic()], [[], 0]);
  });

  test(`${mode}, away after dispatch: after the answer budget the caller gets the job's id; the job completes behind it and a repeat replays`, async () => {
    const it = world();
    it.outbound.script(() => {
      it.log.setAway(true);
      return succeeding();
    });
    const fault = await faultOf(it, execute(it, changes));
    assert.equal(it.clock.monotonic(), ANSWER_BUDGET_MS);
    assert.deepEqual([fault.code, fault.retryAfterSeconds], ['event_log_unavailable', 5]);
    const { jobId } = fault.details as { jobId: string };
    assert.match(fault.message, /will be found at the job/);
    assert.equal(/same payment header/.test(fault.message), mode === 'paid');
    await pass(it, 300);
    it.log.setAway(false);
    await pass(it, 3);
    const answer = await replayed(it, changes);
    assert.deepEqual([answer.job.id, answer.job.status], [jobId, 'succeeded']);
    assert.deepEqual([it.outbound.sent.length, it.payments.calls.settle], [1, mode === 'paid' ? 1 : 0]);
    assert.equal((await audited(it, jobId)).ok, true);
    assert.equal(it.slots.inFlight(), 0);
  });
}

test('unavailable at JobStarted: within seconds the answer names the job that may still start, and asks for a repeat; it runs once, charged once', async () => {
  const it = world();
  it.log.onNext('JobStarted', async (store) => {
    it.log.setAway(true);
    return store();
  });
  const fault = await faultOf(it, execute(it));
  assert.equal(it.clock.monotonic(), 2000);
  assert.match(fault.message, /nothing was sent so far.*same payment header/);
  const { jobId } = fault.details as { jobId: string };
  it.log.setAway(false);
  await pass(it, 3);
  const answer = await replayed(it);
  assert.equal(answer.job.id, jobId);
  assert.deepEqual([it.payments.ledger.size, it.outbound.sent.length], [1, 1]);
});

/** Another starts the job just before this call does, and from then on the log is slow. */
function startedByAnother() {
  const common = shared();
  let slowMs = 0;
  const it: World = world(common, {
    log: {
      ...common.log,
      async readStream(stream, options) {
        await it.clock.sleep(slowMs);
        return common.log.readStream(stream, options);
      },
    },
  });
  common.log.onNext('JobStarted', async (store) => {
    const jobId = String(common.log.events[0]?.data.jobId);
    await given(common, `job-${jobId}`, jobStarted({ jobId, owner: 'another' }));
    slowMs = 3000;
    return store();
  });
  return it;
}

test('another has started the job and the log is slow to answer: the call waits for the answer, it does not give up on a start that is known', async () => {
  const it = startedByAnother();
  const answer = await letPass(it.clock, execute(it, DEMO));
  assert.equal(outcomeOf(answer), 'idempotency_in_progress');
  assert.equal(it.outbound.sent.length, 0);
});

test('an answer within the budget leaves no timer behind', async () => {
  const it = world();
  await execute(it);
  assert.equal(it.clock.advanceToNext(), false);
  it.payments.scriptVerify({ outcome: 'unavailable' });
  await assert.rejects(execute(it, paidWith(otherPayment(), { key: 'k2' })), /could not be verified/);
  assert.equal(it.clock.advanceToNext(), false);
});

test('faults keep their cause for the operator', async () => {
  const it = world();
  it.log.setAway(true);
  const fault = await faultOf(it, execute(it));
  assert.equal((fault.cause as Error).name, 'EventLogUnavailable');
});

test('JobStarted of unknown fate: the caller knows within 2 s that nothing was sent so far; stored in time, the job runs', async () => {
  const it = world();
  const { frozen, open } = gate();
  it.log.onNext('JobStarted', frozen);
  const fault = await faultOf(it, execute(it, DEMO));
  assert.equal(it.clock.monotonic(), 2000);
  assert.match(fault.message, /nothing was sent so far. Repeat with the same idempotencyKey/);
  const { jobId } = fault.details as { jobId: string };
  assert.equal(it.outbound.sent.length, 0);
  open();
  await pass(it, 1);
  assert.equal(it.outbound.sent.length, 1);
  assert.equal((await audited(it, jobId)).ok, true);
});

test('without key and payment: a call that was answered 503 is not sent when the log returns; it is closed not_executed', async () => {
  const it = world();
  const { frozen, open } = gate();
  it.log.onNext('JobStarted', frozen);
  const fault = await faultOf(it, execute(it, { ...DEMO, key: null }));
  assert.match(fault.message, /nothing was sent, and nothing will be: repeat the call/);
  assert.equal(fault.details, undefined);
  open();
  await pass(it, 1);
  assert.equal(it.outbound.sent.length, 0);
  const jobId = String(it.log.events[0]?.data.jobId);
  const [, attempt, completed] = await it.log.readStream(`job-${jobId}`);
  assert.deepEqual(
    [attempt?.data.sent, completed?.data.errorCategory, completed?.data.closedBy],
    ['no', 'not_executed', 'owner'],
  );
  assert.equal((await audited(it, jobId)).ok, true);
  assert.equal(it.slots.inFlight(), 0);
  assert.equal((await execute(it, { ...DEMO, key: null })).kind, 'ran');
  assert.equal(it.outbound.sent.length, 1);
});

test('without key and payment: a log that stores JobStarted late and then goes away is read until the owner has closed the job', async () => {
  const it = world();
  const { frozen, open } = gate();
  it.log.onNext('JobStarted', (store) =>
    frozen(async () => {
      const stored = await store();
      it.log.setAway(true);
      return stored;
    }),
  );
  await faultOf(it, execute(it, { ...DEMO, key: null }));
  open();
  await pass(it, 60);
  it.log.setAway(false);
  await pass(it, 3);
  assert.equal(it.outbound.sent.length, 0);
  const completed = it.log.events.find(({ type }) => type === 'JobCompleted');
  assert.deepEqual([completed?.data.errorCategory, completed?.data.closedBy], ['not_executed', 'owner']);
  assert.equal(it.slots.inFlight(), 0);
});

test('a defect behind the answer is logged with the id of its job', async () => {
  const it = world();
  const cause = new TypeError('a bug');
  const { frozen, open } = gate();
  it.log.onNext('JobStarted', (store) =>
    frozen(async () => {
      await store();
      throw cause;
    }),
  );
  const { jobId } = (await faultOf(it, execute(it))).details as { jobId: string };
  assert.deepEqual(it.logger.lines, []);
  open();
  await pass(it, 1);
  const fields = { jobId, cause };
  assert.deepEqual(it.logger.lines, [{ level: 'bug', message: 'an execution failed', fields }]);
});

for (const [what, spoil, message] of [
  [
    'an event of a newer release in',
    async (it: World, stream: string) => {
      const { length } = await it.log.readStream(stream);
      await it.log.append(stream, BigInt(length - 1), [newEvent({ type: 'PaymentPaused', data: { v: 1 } })]);
    },
    () => /^A newer release has written PaymentPaused version 1 .*nothing was sent/,
  ],
  [
    'a damaged event of',
    async (it: World, stream: string) =>
      it.log.spoil(it.log.events.find((event) => event.stream === stream) ?? assert.fail()),
    (stream: string) => new RegExp(`damaged at revision 0 of stream ${stream}, position.*nothing was sent`),
  ],
] as const)
  test(`${what} the key, or the payment: 503 with its place, nothing is sent or charged`, async () => {
    for (const prefix of ['claim-', 'payment-']) {
      const it = world();
      await letPass(it.clock, execute(it));
      const { stream = '' } = it.log.events.find((event) => event.stream.startsWith(prefix)) ?? {};
      await spoil(it, stream);
      const [before, sent] = [it.log.events.length, it.outbound.sent.length];
      const fault = await faultOf(it, execute(it));
      assert.deepEqual([fault.code, fault.retryAfterSeconds], ['event_log_unavailable', 60]);
      assert.match(fault.message, message(stream));
      assert.deepEqual([it.log.events.length, it.outbound.sent.length], [before, sent]);
      // What does not need the event is executed.
      const other = await letPass(it.clock, execute(it, paidWith(otherPayment('f1'), { key: 'other' })));
      assert.equal(other.kind, 'ran');
    }
  });

/** The disk of the log is full from the first event of this type on: what is stored can be read. */
function fullAt(type: EventType) {
  const common = shared();
  let state: 'room' | 'full' | 'cleared' = 'room';
  const it = world(common, {
    log: {
      ...common.log,
      async append(stream, expected, events) {
        if (state === 'room' && events.some((event) => event.type === type)) state = 'full';
        if (state === 'full') throw new EventLogUnavailable({ cause: new Error('the disk is full') });
        return common.log.append(stream, expected, events);
      },
    },
  });
  const clear = () => {
    state = 'cleared';
  };
  return { it, clear };
}

for (const [mode, type, changes] of [
  ['paid', 'PaymentReserved', {}],
  ['paid', 'IdempotencyKeyClaimed', {}],
  ['paid', 'JobStarted', {}],
  ['demo', 'IdempotencyKeyClaimed', DEMO],
  ['demo', 'JobStarted', DEMO],
] as const)
  test(`${mode}, the disk is full at ${type}: also the repeats answer 503, and then one call is made`, async () => {
    const { it, clear } = fullAt(type);
    for (let n = 0; n < 3; n++) {
      const began = it.clock.monotonic();
      const fault = await faultOf(it, execute(it, changes));
      assert.deepEqual([fault.code, fault.retryAfterSeconds], ['event_log_unavailable', 5]);
      assert.match(fault.message, /nothing was sent so far/);
      if (n === 0) assert.ok(it.clock.monotonic() - began <= 2000, 'within seconds');
    }
    assert.equal(it.outbound.sent.length, 0);
    clear();
    await pass(it, 3);
    const repeated = () => letPass(it.clock, execute(it, changes));
    let answer = await repeated();
    if (outcomeOf(answer) === 'idempotency_in_progress') {
      // As long as a settle call of the first one may be under way.
      await pass(it, 46);
      answer = await repeated();
    }
    assert.match(outcomeOf(answer), /^(ran|replayed)$/);
    assert.deepEqual([it.payments.ledger.size, it.outbound.sent.length], [mode === 'paid' ? 1 : 0, 1]);
    assert.equal(it.slots.inFlight(), 0);
  });
