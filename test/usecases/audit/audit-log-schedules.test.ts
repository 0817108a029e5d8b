// Jobs of schedules in an audit: given the schedule's stream, when a job starts and ends, then faults.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ScheduleEvent, STREAM } from '#src/domain/events.ts';
import { auditSchedules } from '#src/usecases/audit/audit-log-schedules.ts';
import { type ScratchRow, streamStates } from '#src/usecases/audit/stream-states.ts';
import {
  jobCompleted,
  jobStarted,
  runFunded,
  runSkipped,
  runStarted,
  scheduleDefined,
} from '#test/support/given/given-events.ts';
import { memoryScratch } from '#test/support/log/memory-scratch.ts';

const funded = runFunded().data;
const { scheduleId, run, jobId, dueAt, paymentStream, next } = funded;

function audited(...events: readonly ScheduleEvent[]) {
  const schedules = auditSchedules(streamStates(memoryScratch<ScratchRow>()));
  const stream = STREAM.schedule(scheduleId);
  for (const event of [scheduleDefined({ next: { run, dueAt } }), runFunded(), ...events])
    assert.deepEqual(schedules.take(stream, event), []);
  const schedule = { id: scheduleId, run, dueAt, lateByMs: 0 };
  const kindsOf = (errorCategory: 'not_executed' | null) => [
    schedules.started(jobStarted({ jobId, paymentStream, schedule }).data).map(({ kind }) => kind),
    schedules.completed(jobCompleted({ jobId, errorCategory }).data).map(({ kind }) => kind),
  ];
  return kindsOf;
}
const skipped = runSkipped({ plannedJobId: jobId, run, dueAt, movedTo: null, next });

test('a job of a run that its schedule has not started', () => {
  assert.deepEqual(audited()('not_executed'), [['schedule_mismatch'], []]);
  assert.deepEqual(audited(runStarted({ jobId, run }))(null), [[], []]);
});

test('a run that was skipped while its job was being started: nothing to find if nothing was sent', () => {
  const kindsOf = audited(runStarted({ jobId, run }), skipped);
  assert.deepEqual(kindsOf('not_executed'), [[], []]);
  assert.deepEqual(kindsOf(null), [[], ['schedule_mismatch']]);
  assert.deepEqual(audited(skipped)('not_executed'), [['schedule_mismatch'], []]);
});
