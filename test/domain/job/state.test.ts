import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeEvent } from '#src/domain/event-codec.ts';
import type { JobEvent } from '#src/domain/events.ts';
import {
  closeInterrupted,
  completeJob,
  type Impossible,
  recordAttempt,
  startJob,
} from '#src/domain/job/commands.ts';
import { absentJob, evolveJob, type Job, mayAttempt } from '#src/domain/job/state.ts';
import {
  at,
  attemptRetried,
  attemptSucceeded,
  jobCompleted,
  jobStarted,
  receiptSigned,
} from '#test/support/given/given-events.ts';
import { runs } from '#test/support/given/property-runs.ts';

const samples: readonly JobEvent[] = [
  jobStarted(),
  jobStarted({ owner: 'another' }),
  attemptRetried(),
  attemptSucceeded({ number: 2 }),
  jobCompleted(),
  jobCompleted({ status: 'failed' }),
  receiptSigned(),
  receiptSigned({ receiptId: 'rcpt_another' }),
];
const fold = (events: readonly JobEvent[]) => events.reduce(evolveJob, absentJob);

test('a whole job folds to its start, its attempts, its completion and its receipt', () => {
  const events = [
    jobStarted(),
    attemptRetried(),
    attemptSucceeded({ number: 2 }),
    jobCompleted(),
    receiptSigned(),
  ] as const;
  assert.deepEqual(fold(events), {
    status: 'completed',
    started: events[0].data,
    attempts: [events[1].data, events[2].data],
    completed: events[3].data,
    receipt: events[4].data,
  });
});

test('any sequence of events: an event that cannot follow changes nothing; completed stays completed', () => {
  const follows: Record<Job['status'], readonly JobEvent['type'][]> = {
    absent: ['JobStarted'],
    running: ['AttemptMade', 'JobCompleted'],
    completed: ['ReceiptSigned'],
  };
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...samples), { maxLength: 12 }), (events) => {
      let job: Job = absentJob;
      for (const event of events) {
        const before = job;
        job = evolveJob(before, event);
        if (!follows[before.status].includes(event.type)) assert.equal(job, before);
        if (before.status === 'completed') {
          assert.equal(job.status, 'completed');
          if (job.status !== 'completed') return;
          assert.equal(job.completed, before.completed);
          if (before.receipt !== null) assert.equal(job, before);
        }
        if (before.status !== 'absent' && job.status !== 'absent') assert.equal(job.started, before.started);
      }
    }),
    { numRuns: runs(1000) },
  );
});

type Command = (job: Job) => { readonly kind: 'events'; readonly events: readonly JobEvent[] } | Impossible;
const { v: _v, leaseMs: _l, ...startFacts } = jobStarted().data;
const { v: _a, jobId: _j, outcome: _o, ...attempt } = attemptRetried().data;
const response = { responseBytes: null, truncated: false, responseCommitment: null };

const commands: fc.Arbitrary<Command> = fc.oneof(
  fc.integer({ min: 1, max: 3 }).map(
    (attemptsAllowed): Command =>
      (job: Job) =>
        job.status === 'absent'
          ? { kind: 'events', events: startJob({ ...startFacts, attemptsAllowed }) }
          : { kind: 'events', events: [] },
  ),
  fc.tuple(fc.integer({ min: 1, max: 4 }), fc.boolean()).map(
    ([number, willRetry]) =>
      (job: Job) =>
        recordAttempt({ ...attempt, number, willRetry, waitMs: willRetry ? 1 : null }, job),
  ),
  fc.constant((job: Job) =>
    recordAttempt(
      {
        ...attempt,
        errorCategory: null,
        number: job.status === 'running' ? job.attempts.length + 1 : 1,
        willRetry: false,
        waitMs: null,
      },
      job,
    ),
  ),
  fc.constant((job: Job) => completeJob(response, at(1), job)),
  fc
    .constantFrom('interrupted_unknown', 'not_executed')
    .map((cause) => (job: Job) => closeInterrupted(cause, at(2), job)),
);

test('any sequence of commands: attempts are numbered in order, never more than allowed, and completion is once', () => {
  fc.assert(
    fc.property(fc.array(commands, { maxLength: 25 }), (sequence) => {
      const history: JobEvent[] = [];
      for (const command of sequence) {
        const result = command(fold(history));
        if (result.kind === 'events') history.push(...result.events);
      }
      const job = fold(history);
      for (const event of history) assert.notEqual(decodeEvent(JSON.parse(JSON.stringify(event))), null);
      const types = history.map(({ type }) => type);
      assert.ok(types.filter((type) => type === 'JobStarted').length <= 1);
      assert.ok(types.filter((type) => type === 'JobCompleted').length <= 1);
      if (job.status === 'absent') return assert.deepEqual(history, []);
      assert.equal(types[0], 'JobStarted');
      assert.deepEqual(
        job.attempts.map(({ number }) => number),
        job.attempts.map((_, i) => i + 1),
      );
      assert.ok(job.attempts.length <= job.started.attemptsAllowed);
      for (const earlier of job.attempts.slice(0, -1)) assert.equal(earlier.willRetry, true);
      if (job.status === 'running') return;
      assert.equal(types.at(-1), 'JobCompleted');
      assert.equal(job.completed.attempts, job.attempts.length);
      assert.equal(job.completed.status, job.attempts.at(-1)?.outcome);
      assert.equal(job.completed.errorCategory, job.attempts.at(-1)?.errorCategory);
    }),
    { numRuns: runs(3000) },
  );
});

test('an attempt is due after the start and after an announced retry, and never else', () => {
  const due = (...events: JobEvent[]) => {
    const job = fold(events);
    return job.status === 'running' && mayAttempt(job);
  };
  assert.equal(due(jobStarted()), true);
  assert.equal(due(jobStarted(), attemptRetried()), true);
  assert.equal(due(jobStarted(), attemptSucceeded()), false);
});
