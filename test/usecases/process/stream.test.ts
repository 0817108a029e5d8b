import assert from 'node:assert/strict';
import { test } from 'node:test';
import { event } from '#src/domain/events.ts';
import { EventLogUnavailable, WrongExpectedVersion } from '#src/ports/event-log.ts';
import { isOutage, orLogFault } from '#src/ports/outage.ts';
import {
  append,
  appendUnlessOvertaken,
  appendUntilKnown,
  CLAIM,
  decide,
  envelope,
  JOB,
  load,
  PAYMENT,
  tryAppend,
} from '#src/usecases/process/stream.ts';
import {
  attemptRetried,
  CLAIM_STREAM,
  JOB_ID,
  jobStarted,
  keyClaimed,
  PAYMENT_STREAM,
  paymentReserved,
} from '#test/support/given/given-events.ts';
import { lostAnswer, unavailable } from '#test/support/log/fakes-log.ts';
import { letPass, quiet } from '#test/support/world/fakes.ts';
import { given, type World, world } from '#test/support/world/fakes-world.ts';
import { Random } from '#test/support/world/random.ts';

const STREAM = `job-${JOB_ID}`;
const started = (it: World) => envelope(it.deps, [jobStarted()], JOB_ID);

test('an envelope draws fresh random ids at each call, and contains correlation and causation', () => {
  const deps = { entropy: new Random() };
  const events = [jobStarted(), attemptRetried()];
  const [first, second] = envelope(deps, events, JOB_ID, 'cause');
  assert.deepEqual(first?.metadata, { $correlationId: JOB_ID, $causationId: 'cause' });
  assert.deepEqual(second?.metadata, { $correlationId: JOB_ID, $causationId: first?.id });
  assert.deepEqual([first?.data, second?.type], [jobStarted().data, 'AttemptMade']);
  const ids = [first, second, ...envelope(deps, events, JOB_ID)].map((event) => event?.id ?? '');
  assert.equal(new Set(ids).size, 4);
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
});

test('an append of unknown fate is repeated with its own ids, with growing pauses of at most two seconds', async () => {
  const it = world();
  const attempts: string[] = [];
  for (let i = 0; i < 8; i++) it.log.onNext('JobStarted', i % 2 ? lostAnswer : unavailable);
  const append: typeof it.log.append = (stream, expected, events) => {
    attempts.push(`${stream} ${expected} ${events.map(({ id }) => id)}`);
    return it.log.append(stream, expected, events);
  };
  await letPass(
    it.clock,
    appendUntilKnown({ ...it.deps, log: { ...it.log, append } }, STREAM, 'no_stream', started(it)),
  );
  assert.deepEqual([attempts.length, new Set(attempts).size], [9, 1]);
  assert.deepEqual(it.clock.slept, [100, 200, 400, 800, 1600, 2000, 2000, 2000]);
  assert.equal((await it.log.readStream(STREAM)).length, 1);
});

test('a process that ends repeats nothing any more; a log that is merely away ends no repeating', async () => {
  const it = world();
  it.log.setAway(true);
  const ending = new AbortController();
  const appending = appendUntilKnown({ ...it.deps, ending: ending.signal }, STREAM, 'no_stream', started(it));
  let over = false;
  appending.catch(() => {
    over = true;
  });
  for (let n = 0; n < 100; n++) {
    await quiet();
    assert.ok(it.clock.advanceToNext(), 'it is repeated');
  }
  await quiet();
  assert.equal(over, false);
  ending.abort();
  await assert.rejects(appending, EventLogUnavailable);
  assert.equal(it.clock.advanceToNext(), false);
});

test('a conflict is an answer: not repeated', async () => {
  const it = world();
  await given(it, STREAM, jobStarted());
  await assert.rejects(appendUntilKnown(it.deps, STREAM, 'no_stream', started(it)), WrongExpectedVersion);
  assert.deepEqual(it.clock.slept, []);
});

test('equal data under other ids conflicts: a race has one winner', async () => {
  const it = world();
  const both = await Promise.allSettled(
    [1, 2].map(() => appendUntilKnown(it.deps, STREAM, 'no_stream', started(it))),
  );
  assert.deepEqual(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
});

test('a fault that is not the log being away is not repeated', async () => {
  const it = world();
  it.log.onNext('JobStarted', async () => {
    throw new TypeError('broken');
  });
  await assert.rejects(appendUntilKnown(it.deps, STREAM, 'no_stream', started(it)), TypeError);
});

test('a stream folds to its state and to what the next append expects', async () => {
  const it = world();
  assert.deepEqual(await load(it, JOB, JOB_ID), {
    stream: STREAM,
    state: { status: 'absent' },
    expected: 'no_stream',
    events: [],
  });
  await given(it, STREAM, jobStarted(), attemptRetried());
  await given(it, PAYMENT_STREAM, paymentReserved());
  await given(it, CLAIM_STREAM, keyClaimed());
  const job = await load(it, JOB, JOB_ID);
  assert.deepEqual([job.state.status, job.expected, job.events.length], ['running', 1n, 2]);
  const payment = await load(it, PAYMENT, PAYMENT_STREAM);
  assert.deepEqual([payment.state.status, payment.expected], ['reserved', 0n]);
  const claim = await load(it, CLAIM, CLAIM_STREAM);
  assert.deepEqual([claim.state.status, claim.expected], ['held', 0n]);
});

test('an event that cannot be read is a fault, which names its type and nothing of its content', async () => {
  const it = world();
  await given(it, STREAM, jobStarted(), { type: 'AttemptMade', data: { v: 99, secret: 'canary' } });
  await assert.rejects(
    load(it, JOB, JOB_ID),
    (error: Error) => /AttemptMade/.test(error.message) && !/canary|job_/.test(error.message),
  );
});

test('an event of a newer release is an outage of what needs it, unlike a malformed one', async () => {
  const it = world();
  await given(it, STREAM, jobStarted(), { type: 'AttemptMade', data: { v: 99 } });
  await assert.rejects(orLogFault(load(it, JOB, JOB_ID), 'nothing was sent.'), {
    code: 'event_log_unavailable',
    retryAfterSeconds: 60,
    message: /^A newer release has written AttemptMade version 99/,
  });
  const other = world();
  await given(other, STREAM, jobStarted(), { type: 'AttemptMade', data: { v: 0 } });
  await assert.rejects(load(other, JOB, JOB_ID), (error) => !isOutage(error));
});

test('a command decides again on the state that another process has written meanwhile', async () => {
  const it = world();
  const seen: string[] = [];
  await given(it, PAYMENT_STREAM, paymentReserved());
  const released = event('PaymentReleased', {
    jobId: JOB_ID,
    reason: 'key_lost',
    lostKeyTo: null,
    releasedAt: '2026-01-01T00:00:00.000Z',
  });
  const { view, answer } = await decide(it.deps, PAYMENT, PAYMENT_STREAM, async ({ state }) => {
    seen.push(state.status);
    if (state.status !== 'reserved') return { events: [], answer: 'over' };
    await given(it, PAYMENT_STREAM, released);
    return { events: [released], answer: 'released' };
  });
  assert.deepEqual(seen, ['reserved', 'released']);
  assert.deepEqual([answer, view.state.status, view.expected], ['over', 'released', 1n]);
  assert.equal((await it.log.readStream(PAYMENT_STREAM)).length, 2);
});

test('a decision without events appends nothing; one with events returns the view after them', async () => {
  const it = world();
  const nothing = await decide(it.deps, JOB, JOB_ID, () => ({ events: [], answer: null }));
  assert.deepEqual([nothing.view.state.status, nothing.view.expected], ['absent', 'no_stream']);
  const begun = await decide(it.deps, JOB, JOB_ID, () => ({ events: [jobStarted()], answer: 'begun' }));
  assert.deepEqual([begun.answer, begun.view.state.status, begun.view.expected], ['begun', 'running', 0n]);
});

test('an append at a revision that another process has passed: null, or the conflict for the one who looks up again', async () => {
  const it = world();
  const view = await load(it.deps, JOB, JOB_ID);
  await given(it, STREAM, jobStarted());
  assert.equal(await tryAppend(it.deps, JOB, view, [jobStarted()]), null);
  assert.equal(await appendUnlessOvertaken(it.deps, view, started(it)), null);
  await assert.rejects(append(it.deps, JOB, view, [jobStarted()]), WrongExpectedVersion);
});

test('an append that is not repeated reports that its fate is unknown', async () => {
  const it = world();
  it.log.onNext('JobStarted', lostAnswer);
  const place = { stream: STREAM, expected: 'no_stream' } as const;
  await assert.rejects(
    appendUnlessOvertaken(it.deps, place, started(it), { repeats: false }),
    EventLogUnavailable,
  );
  assert.equal((await it.log.readStream(STREAM)).length, 1);
  assert.deepEqual(it.clock.slept, []);
});
