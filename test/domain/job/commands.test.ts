import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JobEvent } from '#src/domain/events.ts';
import {
  type AttemptFacts,
  closeInterrupted,
  completeJob,
  leaseMs,
  recordAttempt,
  type StartFacts,
  startJob,
} from '#src/domain/job/commands.ts';
import type { Job } from '#src/domain/job/state.ts';
import { givenJob } from '#test/support/given/given.ts';
import {
  at,
  attemptRetried,
  attemptSucceeded,
  jobCompleted,
  jobStarted,
  receiptSigned,
} from '#test/support/given/given-events.ts';

const startFacts = (changes: Partial<StartFacts> = {}): StartFacts => {
  const { v: _, leaseMs: __, ...facts } = jobStarted().data;
  return { ...facts, ...changes };
};
const attemptFacts = ({ data }: ReturnType<typeof attemptRetried>): AttemptFacts => {
  const { v: _, jobId: __, outcome: ___, ...facts } = data;
  return facts;
};
const response = { responseBytes: 2, truncated: false, responseCommitment: 'R'.repeat(43) };
const failedLast = (number: number) =>
  attemptRetried({ number, willRetry: false, waitMs: null, retryAfterMs: null });
const closed = [jobStarted(), attemptSucceeded(), jobCompleted(), receiptSigned()] as const;

// ── startJob ────────────────────────────────────────────────────────────────────────────────────────────

test('a job starts once, with its lease written down', () => {
  givenJob()
    .when(() => startJob(startFacts()))
    .thenEvents(jobStarted({ leaseMs: 3 * 12_000 + 2 * 5000 + 15_000 }));
});

test('a lease covers every attempt at its limit, every wait at its longest, and a margin', () => {
  assert.equal(leaseMs(1, 1000), 16_000);
  assert.equal(leaseMs(1, 12_000), 27_000);
  assert.equal(leaseMs(3, 12_000), 61_000);
});

// ── recordAttempt ───────────────────────────────────────────────────────────────────────────────────────

test('the first attempt of a running job is recorded: failed where it has an error', () => {
  givenJob(jobStarted())
    .when((job) => recordAttempt(attemptFacts(attemptRetried()), job))
    .thenEvents(attemptRetried());
});

test('an attempt without an error succeeded', () => {
  givenJob(jobStarted())
    .when((job) => recordAttempt(attemptFacts(attemptSucceeded()), job))
    .thenEvents(attemptSucceeded());
});

test('an announced retry is recorded under the next number', () => {
  givenJob(jobStarted(), attemptRetried())
    .when((job) => recordAttempt(attemptFacts(attemptSucceeded({ number: 2 })), job))
    .thenEvents(attemptSucceeded({ number: 2 }));
});

// ── completeJob ─────────────────────────────────────────────────────────────────────────────────────────

test('the last attempt decides: it succeeded, so the job did, whatever failed before', () => {
  givenJob(
    jobStarted({ decisionId: 'dec_a' }),
    attemptRetried(),
    attemptSucceeded({ number: 2, status: 204 }),
  )
    .when((job) => completeJob(response, at(41), job))
    .thenEvents(jobCompleted({ decisionId: 'dec_a', attempts: 2, responseStatus: 204 }));
});

test('the last attempt decides: it failed, so the job did, with its status and category', () => {
  givenJob(jobStarted(), attemptRetried(), attemptRetried({ number: 2 }), failedLast(3))
    .when((job) => completeJob({ ...response, truncated: true }, at(41), job))
    .thenEvents(
      jobCompleted({
        status: 'failed',
        attempts: 3,
        responseStatus: 503,
        errorCategory: 'target_server_error',
        truncated: true,
      }),
    );
});

// ── closeInterrupted ────────────────────────────────────────────────────────────────────────────────────

const interruptedAttempt = (number: number) =>
  attemptRetried({
    number,
    startedAt: at(90),
    endedAt: at(90),
    phase: 'request',
    sent: 'maybe',
    status: null,
    errorCategory: 'interrupted_unknown',
    reason: 'interrupted',
    timings: { dnsMs: null, connectMs: null, tlsMs: null, ttfbMs: null, totalMs: 0 },
    tlsVersion: null,
    leafCommitment: null,
    addressCommitment: null,
    retryAfterMs: null,
    willRetry: false,
    waitMs: null,
  });
const interruptedJob = (attempts: number) =>
  jobCompleted({
    status: 'failed',
    attempts,
    responseStatus: null,
    errorCategory: 'interrupted_unknown',
    responseBytes: null,
    responseCommitment: null,
    closedBy: 'recovery',
    completedAt: at(90),
  });

test('interrupted before its first attempt was recorded: attempt 1 perhaps happened, and the job failed with it', () => {
  givenJob(jobStarted())
    .when((job) => closeInterrupted('interrupted_unknown', at(90), job))
    .thenEvents(interruptedAttempt(1), interruptedJob(1));
});

test('interrupted after a retry was announced: the announced attempt perhaps happened', () => {
  givenJob(jobStarted(), attemptRetried(), attemptRetried({ number: 2 }))
    .when((job) => closeInterrupted('interrupted_unknown', at(90), job))
    .thenEvents(interruptedAttempt(3), interruptedJob(3));
});

test('not executed: its owner knows that nothing was sent, and closes it itself', () => {
  const started = jobStarted({ decisionId: 'dec_a' });
  const attempt = interruptedAttempt(1).data;
  const job = interruptedJob(1).data;
  givenJob(started)
    .when((state) => closeInterrupted('not_executed', at(90), state))
    .thenEvents(
      attemptRetried({
        ...attempt,
        phase: 'dns',
        sent: 'no',
        errorCategory: 'not_executed',
        reason: 'not_executed',
      }),
      jobCompleted({ ...job, decisionId: 'dec_a', errorCategory: 'not_executed', closedBy: 'owner' }),
    );
});

// ── what cannot follow ──────────────────────────────────────────────────────────────────────────────────

const attempt = (event: ReturnType<typeof attemptRetried>) => (job: Job) =>
  recordAttempt(attemptFacts(event), job);
const complete = (job: Job) => completeJob(response, at(41), job);
const interrupt = (job: Job) => closeInterrupted('interrupted_unknown', at(90), job);

const IMPOSSIBLE: Record<string, readonly (readonly [string, readonly JobEvent[], (job: Job) => object])[]> =
  {
    job_not_running: [
      ['an attempt before the start', [], attempt(attemptSucceeded())],
      ['an attempt after completion', closed, attempt(attemptSucceeded({ number: 2 }))],
      ['completing one that never started', [], complete],
      ['completing one that is completed', closed, complete],
      ['interrupting one that never started', [], interrupt],
      ['interrupting one that is completed', closed, interrupt],
    ],
    attempt_out_of_order: [
      [
        'number 1 after the first',
        [jobStarted(), attemptRetried()],
        attempt(attemptSucceeded({ number: 1 })),
      ],
      [
        'number 3 after the first',
        [jobStarted(), attemptRetried()],
        attempt(attemptSucceeded({ number: 3 })),
      ],
    ],
    no_attempt_left: [
      ['one after no retry', [jobStarted(), failedLast(1)], attempt(attemptSucceeded({ number: 2 }))],
      [
        'the last allowed one with a retry',
        [jobStarted({ attemptsAllowed: 2 }), attemptRetried()],
        attempt(attemptRetried({ number: 2 })),
      ],
      ['interrupting after a final attempt', [jobStarted(), failedLast(1)], interrupt],
    ],
    attempt_pending: [
      ['completing without an attempt', [jobStarted()], complete],
      ['completing while a retry is announced', [jobStarted(), attemptRetried()], complete],
    ],
  };
for (const [why, cases] of Object.entries(IMPOSSIBLE))
  for (const [what, events, command] of cases)
    test(`${why}: ${what}`, () => {
      givenJob(...events)
        .when(command)
        .thenImpossible(why);
    });
