// What operators see: log lines, figures and, if a collector is configured, traces. No use case knows of any of it:
// the ports are instrumented here, and outcomes are counted where their events were stored.
import { randomUUID } from 'node:crypto';
import { pinoLogger } from '#src/adapters/logging/pino.ts';
import { prometheusFigures } from '#src/adapters/telemetry/prometheus.ts';
import type { Config } from '#src/config.ts';
import { SERVICE } from '#src/domain/limits.ts';
import type { Clock } from '#src/ports/clock.ts';
import {
  type EventLog,
  EventLogUnavailable,
  type NewEvent,
  WrongExpectedVersion,
} from '#src/ports/event-log.ts';
import type { DetailLogger, LineLogger, Logger } from '#src/ports/logger.ts';
import type { Outbound } from '#src/ports/outbound.ts';
import type { Payments } from '#src/ports/payments.ts';
import type { Resolver } from '#src/ports/resolver.ts';
import type { AppendOutcome, Figures, SpanFacts, Tracer } from '#src/ports/telemetry.ts';
import { Conditions } from '#src/usecases/process/condition.ts';
import type { Undo } from './shutdown.ts';

export type Telemetry = {
  readonly logger: Logger & DetailLogger;
  /** What `logger` has is wrong. */
  readonly conditions: Conditions;
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
  const runtime = bun === undefined ? `deno ${deno}` : `bun ${bun}`;
  const figures = prometheusFigures({ version: SERVICE.version, runtime });
  let tracer: Tracer | null = null;
  const context = () => {
    const traceId = tracer?.traceId() ?? null;
    return traceId === null ? {} : { traceId };
  };
  const lines = countedBugs(pinoLogger({ level: logLevel, to: 'stdout', context }), figures);
  const conditions = new Conditions(clock, lines);
  const logger = { ...lines, condition: conditions.set.bind(conditions) };
  if (otlpEndpoint !== null) {
    const { otlpTracer } = await import('#src/adapters/telemetry/otlp.ts');
    const service = { name: SERVICE.name, version: SERVICE.version, instance: randomUUID() };
    const opened = otlpTracer({
      endpoint: otlpEndpoint,
      service,
      clock,
      exported: reportExport(logger),
    });
    undo.push(() => opened.close());
    tracer = opened;
  }
  return { logger, conditions, figures, tracer };
}

/** Counts a defect once, also where several parts log it on its way to the caller. */
export function countedBugs<L extends LineLogger>(logger: L, figures: Pick<Figures, 'internalError'>): L {
  const counted = new WeakSet<object>();
  return {
    ...logger,
    bug(message, fields) {
      const { cause } = fields;
      const isKnown = typeof cause === 'object' && cause !== null && counted.has(cause);
      if (typeof cause === 'object' && cause !== null) counted.add(cause);
      if (!isKnown) figures.internalError();
      logger.bug(message, fields);
    },
  };
}

const reportExport =
  (logger: Logger) =>
  (failure: { readonly cause: unknown } | null): void =>
    logger.condition('traces', failure && 'dropped', {}, failure?.cause);

/** What a span says of a call: of its arguments before it, and of its answer. */
type SpanOf<Given extends unknown[], Answer> = {
  readonly called?: (...given: Given) => SpanFacts;
  readonly answered?: (answer: Answer, given: Given) => SpanFacts;
  readonly isFailure?: (answer: Answer) => boolean;
};

/**
 * The call with a span around it. Facts never contain a URL, host, address, header, body, key, payer or a text from
 * outside; of ids only that of a job, which is public.
 */
function traced<Given extends unknown[], Answer>(
  tracer: Tracer,
  name: string,
  call: (...given: Given) => Promise<Answer>,
  { called, answered, isFailure }: SpanOf<Given, Answer> = {},
): (...given: Given) => Promise<Answer> {
  return (...given) =>
    tracer.within(name, 'client', async (span) => {
      if (called !== undefined) span.setAttributes(called(...given));
      const answer = await call(...given);
      if (answered !== undefined) span.setAttributes(answered(answer, given));
      if (isFailure?.(answer)) span.fail();
      return answer;
    });
}

/** Reads and subscriptions of the whole log belong to no request: they get no span. */
export function tracedLog(log: EventLog, tracer: Tracer | null): EventLog {
  if (tracer === null) return log;
  return {
    append: traced(tracer, 'event_log.append', log.append.bind(log), {
      called: (stream, _, events) => ({
        ...factsOfStream(stream),
        'relay.event_log.types': typesOf(events),
      }),
    }),
    appendTogether:
      log.appendTogether &&
      traced(tracer, 'event_log.append', log.appendTogether.bind(log), {
        called: (appends) => ({
          ...factsOfStream(appends.at(-1)?.stream ?? ''),
          'relay.event_log.types': typesOf(appends.flatMap(({ events }) => events)),
        }),
      }),
    readStream: traced(tracer, 'event_log.read', log.readStream.bind(log), {
      answered: (events, [stream]) => ({ ...factsOfStream(stream), 'relay.event_log.events': events.length }),
    }),
    head: traced(tracer, 'event_log.head', () => log.head()),
    readAll: (range) => log.readAll(range),
    subscribeAll: (range) => log.subscribeAll(range),
    health: () => log.health(),
    close: () => log.close(),
  };
}

const typesOf = (events: readonly NewEvent[]): string => events.map(({ type }) => type).join(' ');

/** Names of other categories are hashes of what a caller sent. */
function factsOfStream(stream: string): SpanFacts {
  const [category = '', id = ''] = stream.split('-');
  return { 'relay.event_log.category': category, 'relay.job.id': category === 'job' ? id : null };
}

const OUTCOME = { answered: ({ outcome }: { readonly outcome: string }) => ({ 'relay.outcome': outcome }) };

export function tracedResolver(resolver: Resolver, tracer: Tracer | null): Resolver {
  if (tracer === null) return resolver;
  return { resolve: traced(tracer, 'dns', resolver.resolve.bind(resolver), OUTCOME) };
}

export function tracedPayments(payments: Payments, tracer: Tracer | null): Payments {
  if (tracer === null) return payments;
  return {
    mode: payments.mode,
    validateTerms: (payment) => payments.validateTerms(payment),
    validateNew: (payment, nowMs) => payments.validateNew(payment, nowMs),
    validateTicket: (payment, run) => payments.validateTicket(payment, run),
    verify: traced(tracer, 'payment.verify', payments.verify.bind(payments), OUTCOME),
    verifySignature: traced(tracer, 'payment.verify', payments.verifySignature.bind(payments), OUTCOME),
    settle: traced(tracer, 'payment.settle', payments.settle.bind(payments), OUTCOME),
    lookUp: traced(tracer, 'payment.look_up', payments.lookUp.bind(payments), OUTCOME),
    balanceOf: (authorization) => payments.balanceOf(authorization),
    health: () => payments.health(),
  };
}

/** As in the job's public record; the look-up of an attempt is part of its timings. */
export function tracedOutbound(outbound: Outbound, tracer: Tracer | null): Outbound {
  if (tracer === null) return outbound;
  return {
    send: traced(tracer, 'attempt', outbound.send.bind(outbound), {
      answered: ({ errorCategory, phase, sent, status, timings }, [{ method }]) => ({
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
    }),
  };
}

/**
 * Times each append, and counts its events once it is acknowledged: of the repeats of an append with an unknown outcome
 * only one is acknowledged.
 */
export function countedLog(
  log: EventLog,
  figures: Pick<Figures, 'appended'>,
  clock: Pick<Clock, 'monotonic'>,
): EventLog {
  async function counted<T>(events: readonly NewEvent[], append: () => Promise<T>): Promise<T> {
    const begun = clock.monotonic();
    let outcome: AppendOutcome = 'stored';
    try {
      return await append();
    } catch (error) {
      outcome = outcomeOf(error);
      throw error;
    } finally {
      figures.appended(outcome, (clock.monotonic() - begun) / 1000, events);
    }
  }
  const together = log.appendTogether;
  return {
    append: (stream, expected, events) => counted(events, () => log.append(stream, expected, events)),
    appendTogether:
      together &&
      ((appends) =>
        counted(
          appends.flatMap(({ events }) => events),
          () => together(appends),
        )),
    readStream: (stream, options) => log.readStream(stream, options),
    readAll: (range) => log.readAll(range),
    subscribeAll: (range) => log.subscribeAll(range),
    head: () => log.head(),
    health: () => log.health(),
    close: () => log.close(),
  };
}

function outcomeOf(error: unknown): AppendOutcome {
  if (error instanceof WrongExpectedVersion) return 'conflict';
  return error instanceof EventLogUnavailable ? 'unknown' : 'failed';
}
