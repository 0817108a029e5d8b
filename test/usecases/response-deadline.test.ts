import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cancel } from '#src/lib/time.ts';
import { EventLogUnavailable, WrongExpectedVersion } from '#src/ports/event-log.ts';
import { appendUntilKnown, envelope } from '#src/usecases/process/stream.ts';
import { startResponseDeadline, withinDeadline } from '#src/usecases/response-deadline.ts';
import { JOB_ID, jobStarted } from '#test/support/given/given-events.ts';
import { gate } from '#test/support/log/fakes-log.ts';
import { letPass, quiet } from '#test/support/world/fakes.ts';
import { type World, world } from '#test/support/world/fakes-world.ts';

const STREAM = `job-${JOB_ID}`;
const append = (it: World) =>
  appendUntilKnown(it.deps, STREAM, 'no_stream', envelope(it.deps, [jobStarted()], JOB_ID));

test('before anything moved the caller learns within two seconds; the append is repeated until known, then the call stops', async () => {
  const it = world();
  it.log.setAway(true);
  const deadline = startResponseDeadline(it.clock);
  const before = it.clock.monotonic();
  const appended = deadline.forAppend(append(it));
  await assert.rejects(letPass(it.clock, deadline.passed), EventLogUnavailable);
  assert.equal(it.clock.monotonic() - before, 2000);
  it.log.setAway(false);
  await assert.rejects(letPass(it.clock, appended), EventLogUnavailable);
  assert.equal((await it.log.readStream(STREAM)).length, 1);
});

test('a log that hangs is as good as away', async () => {
  const it = world();
  const { frozen, open } = gate();
  it.log.onNext('JobStarted', frozen);
  const deadline = startResponseDeadline(it.clock);
  const appended = deadline.forAppend(append(it));
  await assert.rejects(letPass(it.clock, deadline.passed), EventLogUnavailable);
  open();
  await assert.rejects(appended, EventLogUnavailable);
  assert.equal((await it.log.readStream(STREAM)).length, 1);
});

test('an append that is known in time answers and conflicts as the log does', async () => {
  const it = world();
  const deadline = startResponseDeadline(it.clock);
  assert.equal((await deadline.forAppend(append(it))).nextRevision, 0n);
  await assert.rejects(deadline.forAppend(append(it)), WrongExpectedVersion);
  it.clock.advance(100_000);
  await quiet();
  deadline.end();
  await quiet();
  assert.equal(it.clock.advanceToNext(), false, 'no one sleeps any more');
});

test('whatever a call waits for, its caller is answered within 110 s', async () => {
  const it = world();
  const deadline = startResponseDeadline(it.clock);
  const before = it.clock.monotonic();
  await assert.rejects(letPass(it.clock, deadline.passed), EventLogUnavailable);
  assert.equal(it.clock.monotonic() - before, 110_000);
});

test('what fails behind the answer is logged as a defect, unless a part is unavailable', async () => {
  const it = world();
  const cause = new TypeError('a bug');
  for (const thrown of [cause, new EventLogUnavailable()]) {
    const { frozen, open } = gate();
    const work = async () => {
      await frozen(async () => ({ nextRevision: 0n, position: '' }));
      throw thrown;
    };
    await assert.rejects(letPass(it.clock, withinDeadline(it.deps, 'too late', work)), {
      message: 'The event log is unavailable: too late',
    });
    open();
    await quiet();
  }
  assert.deepEqual(it.logger.lines, [
    { level: 'bug', message: 'work failed behind its answer', fields: { cause } },
  ]);
});

test('within a deadline a wait still ends with the signal that it was given', async () => {
  const it = world();
  const ending = new Cancel();
  const before = it.clock.monotonic();
  const waited = withinDeadline(it.deps, 'too late', (clock) => clock.sleep(1500, ending));
  await quiet();
  ending.abort();
  await letPass(it.clock, waited);
  assert.equal(it.clock.monotonic(), before, 'no time has passed');
  await withinDeadline(it.deps, 'too late', (clock) => clock.sleep(1500, ending));
  assert.equal(it.clock.monotonic(), before, 'nor where it had aborted before');
});
