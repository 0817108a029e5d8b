// What operators see: log lines, figures and, if a collector is configured, traces. No use case knows of any of it:
// the ports are instrumented here, and outcomes are counted where their events were stored.
import { randomUUID } from 'node:crypto';
import { pinoLogger } from '#src/adapters/logging/pino.ts';
import { prometheusFigures } from '#src/adapters/telemetry/prometheus.ts';
import type { Config } from '#src/config.ts';
import { SERVICE } from '#src/domain/limits.ts';
import type { Clock } from '#src/ports/clock.ts';
import { type EventLog, EventLogUnavailable, WrongExpectedVersion } from '#src/ports/event-log.ts';
import type { DetailLogger, Logger } from '#src/ports/logger.ts';
import type { Outbound } from '#src/ports/outbound.ts';
import type { Payments } from '#src/ports/payments.ts';
import type { Resolver } from '#src/ports/resolver.ts';
import type { AppendOutcome, Figures, SpanFacts, StateNow, Tracer } from '#src/ports/telemetry.ts';
import type { Undo } from './shutdown.ts';

export type Telemetry = {
  readonly logger: Logger & DetailLogger;
  readonly figures: Figures;
  /** null: no collector is configured, and nothing is traced. */
  readonly tracer: Tracer | null;
};

/** Closed by `undo`, within at most two seconds: pushed first there, it is closed last. */
export async function openTelemetry(
  { logLevel, otlpEndpoint }: Pick<Config, 'logLevel' | 'otlpEndpoint'>,
  clock: Clock,
  undo: Undo,
): Promise<Telemetry> {
  const { bun, deno } = process.versions;
  const figures = prometheusFigures({
    version: SERVICE.version,
    runtime: bun === undefined ? `deno ${deno}` : `bun ${bun}`,
  });
  if (otlpEndpoint === null) {
    return { logger: pinoLogger({ level: logLevel, to: 'stdout' }), figures, tracer: null };
  }
  const { otlpTracer } = await import('#src/adapters/telemetry/otlp.ts');
  const context = () => {
    const traceId = tracer.traceId();
    return traceId === null ? {} : { traceId };
  };
  const logger = pinoLogger({ level: logLevel, to: 'stdout', context });
  const service = { name: SERVICE.name, version: SERVICE.version, instance: randomUUID() };
  const exported = logOnChange(logger, figures);
  const tracer = otlpTracer({ endpoint: otlpEndpoint, service, clock, exported });
  undo.push(() => tracer.close());
  return { logger, figures, tracer };
}

/** A collector that does not answer is logged once, not once a batch. */
function logOnChange(logger: Logger, figures: Figures): (spans: number, taken: boolean) => void {
  let working = true;
  return (spans, taken) => {
    figures.spansExported(spans, taken);
    if (taken === working) return;
    working = taken;
    if (taken) logger.info('the trace collector accepts spans again');
    else logger.warn('the trace collector does not accept spans; they are dropped and counted');
  };
}

/** The span of one method of a port: its name, what is known at the call, what is known of the answer. */
type MethodSpan<Given extends unknown[], Answer> = {
  readonly name: string;
  readonly called?: (...given: Given) => SpanFacts;
  readonly answered?: (answer: Answer, ...given: Given) => SpanFacts;
  readonly isFailure?: (answer: Answer) => boolean;
};

/** By method; those that are missing get no span. */
export type PortSpans<P> = {
  readonly [M in keyof P]?: P[M] extends (...given: infer Given) => Promise<infer Answer>
    ? MethodSpan<Given, Answer>
    : never;
};

/**
 * The port with a span around each call of the methods in `spans`. Facts never contain a URL, host, address, header,
 * body, key, payer or a text from outside; of names only the id of a job, which is public.
 */
export function instrument<P extends object>(port: P, tracer: Tracer | null, spans: PortSpans<P>): P {
  if (tracer === null) return port;
  const methods = Object.entries(spans) as unknown as [keyof P, MethodSpan<unknown[], unknown>][];
  const instrumented = methods.map(([method, { name, called, answered, isFailure }]) => {
    const call = port[method] as (...given: unknown[]) => Promise<unknown>;
    const traced = (...given: unknown[]) =>
      tracer.within(name, 'client', async (span) => {
        if (called !== undefined) span.setAttributes(called(...given));
        const answer = await call(...given);
        if (answered !== undefined) span.setAttributes(answered(answer, ...given));
        if (isFailure?.(answer)) span.fail();
        return answer;
      });
    return [method, traced] as const;
  });
  return { ...port, ...Object.fromEntries(instrumented) };
}

/** Reads and subscriptions of the whole log belong to no request: they get no span. */
export const EVENT_LOG_SPANS: PortSpans<EventLog> = {
  append: {
    name: 'event_log.append',
    called: (stream, _, events) => ({
      ...factsOfStream(stream),
      'relay.event_log.types': events.map(({ type }) => type).join(' '),
    }),
  },
  readStream: {
    name: 'event_log.read',
    answered: (events, stream) => ({ ...factsOfStream(stream), 'relay.event_log.events': events.length }),
  },
  head: { name: 'event_log.head' },
};

/** Names of other categories are hashes of what a caller sent. */
function factsOfStream(stream: string): SpanFacts {
  const [category = '', id = ''] = stream.split('-');
  return { 'relay.event_log.category': category, 'relay.job.id': category === 'job' ? id : null };
}

export const RESOLVER_SPANS: PortSpans<Resolver> = { resolve: { name: 'dns', answered: factsOfOutcome } };

export const PAYMENT_SPANS: PortSpans<Payments> = {
  verify: { name: 'payment.verify', answered: factsOfOutcome },
  settle: { name: 'payment.settle', answered: factsOfOutcome },
  lookUp: { name: 'payment.look_up', answered: factsOfOutcome },
};

function factsOfOutcome({ outcome }: { readonly outcome: string }): SpanFacts {
  return { 'relay.outcome': outcome };
}

/** As in the job's public record; the look-up of an attempt is part of its timings. */
export const OUTBOUND_SPANS: PortSpans<Outbound> = {
  send: {
    name: 'attempt',
    answered: ({ errorCategory, phase, sent, status, timings }, { method }) => ({
      'http.request.method': method,
      'relay.outcome': errorCategory ?? 'succeeded',
      'relay.attempt.phase': phase,
      'relay.attempt.sent': sent,
      'http.response.status_code': status,
      'relay.attempt.dns_ms': timings.dnsMs,
      'relay.attempt.connect_ms': timings.connectMs,
      'relay.attempt.tls_ms': timings.tlsMs,
      'relay.attempt.ttfb_ms': timings.ttfbMs,
      'relay.attempt.total_ms': timings.totalMs,
    }),
    isFailure: ({ errorCategory }) => errorCategory !== null,
  },
};

/**
 * Times each append, and counts its events once it is acknowledged: of the repeats of an append with an unknown outcome
 * only one is acknowledged.
 */
export function countedLog(
  log: EventLog,
  figures: Pick<Figures, 'appended'>,
  clock: Pick<Clock, 'monotonic'>,
): EventLog {
  return {
    ...log,
    async append(stream, expected, events) {
      const begun = clock.monotonic();
      const ended = (outcome: AppendOutcome) =>
        figures.appended(outcome, (clock.monotonic() - begun) / 1000, events);
      try {
        const appended = await log.append(stream, expected, events);
        ended('stored');
        return appended;
      } catch (error) {
        ended(outcomeOf(error));
        throw error;
      }
    },
  };
}

function outcomeOf(error: unknown): AppendOutcome {
  if (error instanceof WrongExpectedVersion) return 'conflict';
  return error instanceof EventLogUnavailable ? 'unknown' : 'failed';
}

type Health = () => Promise<{ readonly ok: boolean }>;

export type StateParts = {
  readonly clock: Pick<Clock, 'sleep'>;
  readonly eventLog: Health;
  readonly readModels: Health;
  readonly rest: () => Pick<StateNow, 'storage' | 'executionsInFlight' | 'lag'>;
};

/** A part that has not answered by then is reported as down: a scrape must not wait for it. */
const HEALTH_MS = 1000;

/** Concurrent scrapes share one check of each part. */
export function stateReader({ clock, eventLog, readModels, rest }: StateParts): () => Promise<StateNow> {
  const isUp = (check: Health) =>
    Promise.race([
      check().then(
        ({ ok }) => ok,
        () => false,
      ),
      clock.sleep(HEALTH_MS).then(() => false),
    ]);
  let checking: Promise<readonly [boolean, boolean]> | null = null;
  return async () => {
    checking ??= Promise.all([isUp(eventLog), isUp(readModels)]).finally(() => {
      checking = null;
    });
    const [eventLogUp, readModelsUp] = await checking;
    return { eventLogUp, readModelsUp, ...rest() };
  };
}
