// Given a job's events so far, when another event follows, then faults.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jobFaults } from '#src/domain/audit/judge-job.ts';
import { closeInterrupted } from '#src/domain/job/commands.ts';
import { givenJob } from '#test/support/given/given.ts';
import {
  at,
  attemptRetried,
  attemptSucceeded,
  JOB_ID,
  jobCompleted,
  jobStarted,
  receiptSigned,
} from '#test/support/given/given-events.ts';

const { state: running } = givenJob(jobStarted());
function closing(cause: 'interrupted_unknown' | 'not_executed') {
  const closed = closeInterrupted(cause, at(9000), running);
  assert.ok(closed.kind === 'events');
  return closed.events;
}
const [unknownAttempt, unknownEnd] = closing('interrupted_unknown');
const [unsentAttempt, unsentEnd] = closing('not_executed');
const impossible = ['job_event_impossible'];

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
  ['a receipt', [jobStarted(), attemptSucceeded(), jobCompleted()], receiptSigned(), []],
  [
    'an attempt that was not announced',
    [jobStarted(), attemptSucceeded()],
    attemptSucceeded({ number: 2 }),
    impossible,
  ],
  ['an end while a retry is due', [jobStarted(), attemptRetried()], jobCompleted(), impossible],
  [
    'an attempt with more announced than allowed',
    [jobStarted({ attemptsAllowed: 1 })],
    attemptRetried(),
    impossible,
  ],
  [
    'an attempt with an outcome against its category',
    [jobStarted()],
    attemptSucceeded({ outcome: 'failed' }),
    impossible,
  ],
  [
    'an end other than its last attempt',
    [jobStarted(), attemptSucceeded()],
    jobCompleted({ status: 'failed' }),
    impossible,
  ],
  [
    'an end after more attempts',
    [jobStarted(), attemptSucceeded()],
    jobCompleted({ attempts: 2 }),
    impossible,
  ],
  ['an attempt before the start', [], attemptSucceeded(), impossible],
  ['a receipt before the end', [jobStarted(), attemptSucceeded()], receiptSigned(), ['receipt_without_job']],
  [
    'a second receipt',
    [jobStarted(), attemptSucceeded(), jobCompleted(), receiptSigned()],
    receiptSigned(),
    ['receipt_repeated'],
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

test('each fault of a job is a sentence that names the job and what is wrong with it', () => {
  const late = { number: 3 };
  for (const [given, event, message] of [
    [[jobStarted()], jobStarted(), `Job ${JOB_ID} has already started.`],
    [[], attemptSucceeded(), `Attempt 1 of job ${JOB_ID} is recorded before its start.`],
    [
      [jobStarted(), attemptRetried()],
      jobCompleted(),
      `Attempt 2 of job ${JOB_ID} was announced and never recorded.`,
    ],
    [
      [jobStarted(), attemptRetried()],
      attemptSucceeded(late),
      `Attempt 3 of job ${JOB_ID} is recorded where attempt 2 was due.`,
    ],
    [
      [jobStarted(), attemptSucceeded()],
      attemptSucceeded({ number: 2 }),
      `Attempt 2 of job ${JOB_ID} is recorded and was never announced.`,
    ],
    [
      [jobStarted({ attemptsAllowed: 1 })],
      attemptRetried(),
      `Attempt 1 of job ${JOB_ID} announces another attempt, and no more are allowed.`,
    ],
    [
      [jobStarted(), attemptSucceeded()],
      jobCompleted({ attempts: 2 }),
      `The completion of job ${JOB_ID} contradicts the events before it in attempts.`,
    ],
  ] as const) {
    const { state } = givenJob(...given);
    assert.deepEqual(
      jobFaults(state, event).map((fault) => fault.message),
      [message],
    );
  }
});
