// Given a job's events so far, when another event follows, then faults.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jobFaults } from '#src/domain/audit/judge-job.ts';
import type { JobEvent } from '#src/domain/events.ts';
import { closeInterrupted, isRefusedCommand } from '#src/domain/job/commands.ts';
import { givenJob } from '#test/support/given.ts';
import {
  at,
  attemptRetried,
  attemptSucceeded,
  commitment,
  jobCompleted,
  jobStarted,
  receiptSigned,
} from '#test/support/given-events.ts';

const { state: running } = givenJob(jobStarted());
function closing(cause: 'interrupted_unknown' | 'not_executed') {
  const events = closeInterrupted(cause, at(9000), running);
  assert.ok(!isRefusedCommand(events));
  return events;
}
const [unknownAttempt, unknownEnd] = closing('interrupted_unknown');
const [unsentAttempt, unsentEnd] = closing('not_executed');
const completion = ['job_completion_mismatch'];
const impossible = ['job_event_impossible'];
const after = (event: JobEvent, changes: object) =>
  ({ ...event, data: { ...event.data, ...changes } }) as JobEvent;

for (const [title, given, event, kinds] of [
  ['the first attempt', [jobStarted()], attemptSucceeded(), []],
  [
    'a retry after one that announced it',
    [jobStarted(), attemptRetried()],
    attemptSucceeded({ number: 2 }),
    [],
  ],
  ['an end by its owner', [jobStarted(), attemptSucceeded()], jobCompleted(), []],
  ['an end by recovery', [jobStarted(), unknownAttempt], unknownEnd, []],
  ['an end of a job that was never sent', [jobStarted(), unsentAttempt], unsentEnd, []],
  ['an attempt as its job starts', [jobStarted()], attemptSucceeded({ startedAt: at(-60_000) }), []],
  ['an attempt before its job', [jobStarted()], attemptSucceeded({ startedAt: at(-60_001) }), impossible],
  [
    'an attempt of no time',
    [jobStarted()],
    attemptSucceeded({ startedAt: at(64_000), endedAt: at(4000) }),
    [],
  ],
  [
    'an attempt that ends before it starts',
    [jobStarted()],
    attemptSucceeded({ startedAt: at(64_001), endedAt: at(4000) }),
    impossible,
  ],
  ['a receipt', [jobStarted(), attemptSucceeded(), jobCompleted()], receiptSigned(), []],
  [
    'an attempt that was not announced',
    [jobStarted(), attemptSucceeded()],
    attemptSucceeded({ number: 2 }),
    impossible,
  ],
  ['an end while a retry is due', [jobStarted(), attemptRetried()], jobCompleted(), impossible],
  ['an attempt before the start', [], attemptSucceeded(), impossible],
  ['a receipt before the end', [jobStarted(), attemptSucceeded()], receiptSigned(), ['receipt_without_job']],
  [
    'a second receipt',
    [jobStarted(), attemptSucceeded(), jobCompleted(), receiptSigned()],
    receiptSigned(),
    ['receipt_repeated'],
  ],
  [
    'an interrupted attempt with a phase',
    [jobStarted()],
    after(unknownAttempt, { phase: 'body' }),
    impossible,
  ],
  [
    'a recovery recorded as the owner',
    [jobStarted(), unknownAttempt],
    after(unknownEnd, { closedBy: 'owner' }),
    completion,
  ],
  [
    'an owner’s end that calls itself recovery',
    [jobStarted(), unsentAttempt],
    after(unsentEnd, { closedBy: 'recovery' }),
    completion,
  ],
  [
    'a response to an interrupted attempt',
    [jobStarted(), unknownAttempt],
    after(unknownEnd, { responseBytes: 0, responseCommitment: commitment('R') }),
    completion,
  ],
  [
    'a truncated response to an interrupted attempt',
    [jobStarted(), unknownAttempt],
    after(unknownEnd, { truncated: true }),
    completion,
  ],
] as const) {
  test(`${title}: ${kinds.join() || 'nothing to find'}`, () => {
    const { state } = givenJob(...given);
    assert.deepEqual(
      jobFaults(state, event).map(({ kind }) => kind),
      kinds,
    );
  });
}
