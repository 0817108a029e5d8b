import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventLogUnavailable, WrongExpectedVersion } from '#src/ports/event-log.ts';
import { appendUntilKnown, envelope, loadClaim, loadJob, loadPayment } from '#src/usecases/event-streams.ts';
import { letPass, quiet, seededEntropy } from '#test/support/fakes.ts';
import { lostAnswer, unavailable } from '#test/support/fakes-log.ts';
import { given, type World, world } from '#test/support/fakes-world.ts';
import {
  attemptRetried,
  CLAIM_STREAM,
  JOB_ID,
  jobStarted,
  keyClaimed,
  PAYMENT_STREAM,
  paymentReserved,
} from '#test/support/given-events.ts';

const STREAM = `job-${JOB_ID}`;
const started = (it: World) => envelope(it.deps, [jobStarted()], JOB_ID);

test('an envelope draws fresh random ids at each call, and states correlation and causation', () => {
  const deps = { entropy: seededEntropy() };
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
  assert.deepEqual(await loadJob(it.log, JOB_ID), {
    stream: STREAM,
    state: { status: 'absent' },
    expected: 'no_stream',
    events: [],
  });
  await given(it, STREAM, jobStarted(), attemptRetried());
  await given(it, PAYMENT_STREAM, paymentReserved());
  await given(it, CLAIM_STREAM, keyClaimed());
  const job = await loadJob(it.log, JOB_ID);
  assert.deepEqual([job.state.status, job.expected, job.events.length], ['running', 1n, 2]);
  const payment = await loadPayment(it.log, PAYMENT_STREAM);
  assert.deepEqual([payment.state.status, payment.expected], ['reserved', 0n]);
  const claim = await loadClaim(it.log, CLAIM_STREAM);
  assert.deepEqual([claim.state.status, claim.expected], ['held', 0n]);
});

test('an event that cannot be read is a fault, which names its type and nothing of its content', async () => {
  const it = world();
  await given(it, STREAM, jobStarted(), { type: 'AttemptMade', data: { v: 99, secret: 'canary' } });
  await assert.rejects(
    loadJob(it.log, JOB_ID),
    (error: Error) => /AttemptMade/.test(error.message) && !/canary|job_/.test(error.message),
  );
});
