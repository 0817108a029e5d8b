// Figures as Prometheus collects them: counters of this process (Prometheus adds processes up), base units, names by
// its conventions. Every label has a bounded set of values: whatever is outside of it is `other`.
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { ErrorCategory } from '#src/domain/event-fields.ts';
import type { NewEvent } from '#src/ports/event-log.ts';
import type { AppendOutcome, Figures } from '#src/ports/telemetry.ts';
import { type BuildInfo, stateGauges } from './state-gauges.ts';

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
  const inFlight = new Gauge({
    name: 'http_requests_in_flight',
    help: 'Requests that are being answered.',
    registers,
  });
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
  const showState = stateGauges(registry, build);

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
      showState(now);
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

const known = (value: unknown, values: readonly string[]): string =>
  values.find((one) => one === value) ?? 'other';
