// What is counted of the log.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemEntropy } from '#src/adapters/runtime/clock.ts';
import { prometheusFigures } from '#src/adapters/telemetry/prometheus.ts';
import { countedBugs, countedLog, tracedLog, tracedPayments } from '#src/app/telemetry.ts';
import { healthReport } from '#src/domain/monitoring/health.ts';
import type { NewEvent } from '#src/ports/event-log.ts';
import type { Tracer } from '#src/ports/telemetry.ts';
import { appendUntilKnown } from '#src/usecases/process/stream.ts';
import { ALL_WELL } from '#test/support/given/all-well.ts';
import { readFigures } from '#test/support/given/figures.ts';
import { faultyLog, lostAnswer, unavailable } from '#test/support/log/fakes-log.ts';
import { collectingLogger, letPass, manualClock } from '#test/support/world/fakes.ts';

const lag = { lagEvents: 0, lagMs: 0 };
const state = {
  storage: 's',
  conditions: [],
  eventLog: { damagedEvents: 0, scrubbedAt: null },
  disk: null,
  executionsInFlight: 0,
  unclosableJobs: 0,
  lag,
  payments: null,
  witnesses: null,
  checks: healthReport(ALL_WELL).checks,
  checkpoint: { size: 9, signedAt: '2030-01-01T00:00:00.000Z', waitingMs: 2500 },
};

function world() {
  const clock = manualClock();
  const figures = prometheusFigures({ version: '0', runtime: 'r' });
  const inner = faultyLog();
  const log = countedLog(inner, figures, clock);
  const deps = { log, clock, entropy: systemEntropy(), logger: collectingLogger() };
  const completed = (): NewEvent[] => [
    { id: deps.entropy.uuid(), type: 'JobCompleted', data: { status: 'succeeded' }, metadata: {} },
  ];
  return {
    inner,
    log,
    completed,
    append: (stream: string) => letPass(clock, appendUntilKnown(deps, stream, 'no_stream', completed())),
    read: async () => {
      const seen = readFigures((await figures.exposition(state)).text);
      const appends = (outcome: string) => seen.of('relay_event_log_append_seconds_count', { outcome });
      return {
        jobs: seen.of('relay_jobs_total', { status: 'succeeded' }),
        appends: ['stored', 'conflict', 'unknown', 'failed'].map(appends),
      };
    },
  };
}

test('counted: an append that is stored at once counts once', async () => {
  const { append, read } = world();
  await append('job-a');
  assert.deepEqual(await read(), { jobs: 1, appends: [1, 0, 0, 0] });
});

test('counted: an append whose answers were lost counts once, however often it was repeated', async () => {
  const { inner, append, read } = world();
  inner.onNext('JobCompleted', lostAnswer);
  inner.onNext('JobCompleted', unavailable);
  inner.onNext('JobCompleted', lostAnswer);
  await append('job-a');
  assert.deepEqual(await read(), { jobs: 1, appends: [1, 0, 3, 0] });
});

test('counted: what was not stored counts for nothing', async () => {
  const { inner, log, append, completed, read } = world();
  await append('job-a');
  await assert.rejects(append('job-a'), { name: 'WrongExpectedVersion' });
  inner.onNext('JobCompleted', async () => {
    throw new TypeError('a fault');
  });
  await assert.rejects(log.append('job-b', 'no_stream', completed()), TypeError);
  assert.deepEqual(await read(), { jobs: 1, appends: [1, 1, 0, 1] });
});

test('figures: a defect is logged and counted, an error of the environment only logged', async () => {
  const figures = prometheusFigures({ version: '0', runtime: 'r' });
  const lines = collectingLogger();
  const logger = countedBugs(lines, figures);
  const cause = new TypeError('a bug');
  logger.bug('a query failed', { jobId: 'job_1', cause });
  logger.bug('a request failed', { requestId: '1', cause });
  logger.error('no space left', { cause });
  const fields = { jobId: 'job_1', cause };
  assert.deepEqual(lines.lines[0], { level: 'bug', message: 'a query failed', fields });
  assert.equal(lines.lines.length, 3);
  const seen = readFigures((await figures.exposition(state)).text);
  assert.equal(seen.of('relay_internal_errors_total'), 1);
});

/** An adapter may be a class: its methods are on the prototype, and use `this`. */
class Adapter {
  readonly mode = 'demo';
  readonly #answer = 'from the adapter';
  async append() {
    return this.#answer;
  }
  async readStream(...given: unknown[]) {
    return [this.#answer, ...given];
  }
  async *subscribeAll({ signal }: { signal: AbortSignal }) {
    yield { kind: signal.aborted ? this.#answer : 'not aborted' };
  }
  async head() {
    return this.#answer;
  }
  async verify() {
    return this.#answer;
  }
  async verifySignature() {
    return this.#answer;
  }
  async settle() {
    return this.#answer;
  }
  async lookUp() {
    return this.#answer;
  }
  async health() {
    return this.#answer;
  }
}

const span = { rename() {}, setAttributes() {}, fail() {} };
const tracer: Tracer = {
  within: (_name, _kind, work) => work(span),
  traceId: () => null,
  close: async () => undefined,
};

test('instrumented: every member of a port reaches the adapter with all that it was given', async () => {
  const adapter = new Adapter() as never;
  const figures = prometheusFigures({ version: '0', runtime: 'r' });
  for (const log of [tracedLog(adapter, tracer), countedLog(adapter, figures, manualClock())]) {
    assert.equal(await log.head(), 'from the adapter');
    for await (const { kind } of log.subscribeAll({ after: null, signal: AbortSignal.abort() }))
      assert.equal(kind, 'from the adapter');
    const read: unknown = await log.readStream('job-a', { max: 1 });
    assert.deepEqual(read, ['from the adapter', 'job-a', { max: 1 }]);
  }
  const payments = tracedPayments(adapter, tracer);
  assert.deepEqual([payments.mode, await payments.health()], ['demo', 'from the adapter']);
  assert.equal(await payments.verifySignature({} as never), 'from the adapter');
});
