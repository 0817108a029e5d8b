// Figures as Prometheus collects them: counters of this process (Prometheus adds processes up), base units, names by
// its conventions. Every label has a bounded set of values: whatever is outside of it is `other`.
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { ErrorCategory } from '#src/domain/event-fields.ts';
import type { NewEvent } from '#src/ports/event-log.ts';
import type { AppendOutcome, Figures } from '#src/ports/telemetry.ts';
import { paymentGauges } from './payment-gauges.ts';

/** What this process is. */
type BuildInfo = { readonly version: string; readonly runtime: string };

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'other'];
const ATTEMPTS = ['succeeded', ...ErrorCategory.anyOf.map((category) => category.const), 'other'];
const JOBS = ['succeeded', 'failed', 'other'];
/** `…_later`: found out after the settle call, from the chain or by an operator. */
const SETTLEMENTS = [
  'settled',
  'settled_later',
  'rejected',
  'rejected_later',
  'unknown',
  'released',
  'missing',
  'corrected',
];
const APPENDS: readonly AppendOutcome[] = ['stored', 'conflict', 'unknown', 'failed'];

/** Seconds. An execution may take three attempts of 12 s. */
const REQUEST_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 45];
const APPEND_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 20];

/** A separate registry: the default metrics of the library depend on one runtime. */
export function prometheusFigures(build: BuildInfo): Figures {
  const registry = new Registry();
  const registers = [registry];
  const counter = (name: string, help: string, label: string, values: readonly string[]) => {
    const made = new Counter<string>({ name, help, labelNames: [label], registers });
    // A series that begins at 0: a rate sees its first step too.
    for (const value of values) made.inc({ [label]: value }, 0);
    return (value: string) => made.inc({ [label]: value });
  };
  const histogram = (name: string, help: string, labelNames: string[], buckets: number[]) =>
    new Histogram({ name, help, labelNames, buckets, registers });
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name, help, labelNames, registers });

  const appends = histogram(
    'relay_event_log_append_seconds',
    'Time from an append to the answer of the log, by how it ended.',
    ['outcome'],
    APPEND_BUCKETS,
  );
  for (const outcome of APPENDS) appends.zero({ outcome });
  const requests = new Counter({
    name: 'http_requests_total',
    help: 'Requests answered, by the pattern of their route (none: no route has the path).',
    labelNames: ['route', 'method', 'status'],
    registers,
  });
  const durations = histogram(
    'http_request_duration_seconds',
    'Time from a request to its answer.',
    ['route', 'method'],
    REQUEST_BUCKETS,
  );
  const inFlight = gauge('http_requests_in_flight', 'Requests that are being answered.');
  const attempts = counter(
    'relay_attempts_total',
    'Attempts recorded, by outcome: succeeded, or why not.',
    'outcome',
    ATTEMPTS,
  );
  const jobs = counter('relay_jobs_total', 'Jobs completed.', 'status', JOBS);
  const settlements = counter(
    'relay_settlements_total',
    'What was learnt of payments: at the settle call, or later.',
    'outcome',
    SETTLEMENTS,
  );
  const internalErrors = new Counter({
    name: 'relay_internal_errors_total',
    help: 'Defects of this program that were noticed; the log has each with its stack, as code internal_error.',
    registers,
  });
  const start = gauge('process_start_time_seconds', 'Start of the process, Unix time.');
  start.set(Date.now() / 1000 - process.uptime());
  const info = gauge('relay_build_info', 'What runs here; always 1.', ['version', 'runtime', 'storage']);
  const memory = gauge('process_resident_memory_bytes', 'Memory that the process holds.');
  const executions = gauge('relay_executions_in_flight', 'Executions that hold a slot of MAX_IN_FLIGHT.');
  const unclosable = gauge(
    'relay_jobs_unclosable',
    'Jobs of dead processes whose closing fails; the log has the cause.',
  );
  const parts = gauge(
    'relay_part_up',
    'Whether a part does what callers need of it, as in /health: 1 or 0.',
    ['part'],
  );
  const problems = gauge('relay_part_problem', 'Why a part is not up; always 1.', ['part', 'reason']);
  const damagedEvents = gauge(
    'relay_event_log_damaged_events',
    'Stored events known to be unreadable as they were written; the log and /health name them.',
  );
  const scrubTime = gauge(
    'relay_event_log_scrubbed_timestamp_seconds',
    'When all stored events were last read to find damage, Unix time; absent before, and with EventStoreDB.',
  );
  const checkpointSize = gauge('relay_checkpoint_size', 'Leaves that the newest checkpoint covers.');
  const checkpointTime = gauge(
    'relay_checkpoint_timestamp_seconds',
    'When the newest checkpoint was signed, Unix time; none is signed while there is nothing new.',
  );
  const checkpointWait = gauge(
    'relay_checkpoint_wait_seconds',
    'How long the oldest leaf that no checkpoint covers has waited.',
  );
  const lagEvents = gauge(
    'relay_projection_lag_events',
    'Events that the read models have yet to show; absent while unknown.',
  );
  const lagSeconds = gauge(
    'relay_projection_lag_seconds',
    'How long the oldest of them has waited, or how long it has not been known.',
  );

  const showPayments = paymentGauges(gauge);

  function countFact({ type, data }: NewEvent): void {
    const later = data.evidence === 'facilitator' ? '' : '_later';
    const succeeded = data.outcome === 'succeeded';
    if (type === 'AttemptMade') attempts(succeeded ? 'succeeded' : known(data.errorCategory, ATTEMPTS));
    if (type === 'JobCompleted') jobs(known(data.status, JOBS));
    if (type === 'PaymentSettled') settlements(`settled${later}`);
    if (type === 'PaymentRejected') settlements(`rejected${later}`);
    if (type === 'SettlementUnknown') settlements('unknown');
    if (type === 'PaymentReleased') settlements('released');
    if (type === 'PaymentMissing') settlements('missing');
    if (type === 'SettlementCorrected') settlements('corrected');
  }

  return {
    requestBegun() {
      inFlight.inc();
      return ({ route, method, status, seconds }) => {
        const served = { route: route ?? 'none', method: known(method, METHODS) };
        inFlight.dec();
        requests.inc({ ...served, status });
        durations.observe(served, seconds);
      };
    },
    appended(outcome, seconds, events) {
      appends.observe({ outcome }, seconds);
      if (outcome === 'stored') for (const event of events) countFact(event);
    },
    internalError: () => internalErrors.inc(),
    async exposition(now) {
      const { storage, checks, eventLog, checkpoint, executionsInFlight, unclosableJobs, lag, payments } =
        now;
      info.set({ ...build, storage }, 1);
      problems.reset();
      for (const [name, state] of Object.entries(checks)) {
        if (state === null) continue;
        const part = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
        parts.set({ part }, Number(state.ok));
        if (!state.ok) problems.set({ part, reason: state.reason }, 1);
      }
      damagedEvents.set(eventLog.damagedEvents);
      setOrRemove(scrubTime, eventLog.scrubbedAt === null ? null : eventLog.scrubbedAt / 1000);
      setOrRemove(checkpointSize, checkpoint?.size ?? null);
      setOrRemove(checkpointTime, checkpoint?.signedAt ? Date.parse(checkpoint.signedAt) / 1000 : null);
      setOrRemove(checkpointWait, checkpoint && checkpoint.waitingMs / 1000);
      executions.set(executionsInFlight);
      unclosable.set(unclosableJobs);
      lagSeconds.set(lag.lagMs / 1000);
      setOrRemove(lagEvents, lag.lagEvents);
      showPayments(payments);
      memory.set(process.memoryUsage().rss);
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

/** Unknown is no number: the series is left out. */
function setOrRemove(gauge: Gauge, value: number | null): void {
  if (value === null) gauge.remove();
  else gauge.set(value);
}

const known = (value: unknown, values: readonly string[]): string =>
  values.find((one) => one === value) ?? 'other';
