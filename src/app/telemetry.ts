// What operators see: lines, figures and, where a collector is named, traces. No use case knows of any of it: outcomes
// are counted where their events were stored.
import { randomUUID } from 'node:crypto';
import { pinoLogger } from '#src/adapters/logging/pino.ts';
import { prometheusFigures } from '#src/adapters/telemetry/prometheus.ts';
import type { Config } from '#src/config.ts';
import { SERVICE } from '#src/domain/limits.ts';
import type { Clock } from '#src/ports/clock.ts';
import { type EventLog, EventLogUnavailable, WrongExpectedVersion } from '#src/ports/event-log.ts';
import type { DetailLogger, Logger } from '#src/ports/logger.ts';
import type { AppendOutcome, Figures, StateNow, Tracer } from '#src/ports/telemetry.ts';
import type { Undo } from './shutdown.ts';
import { tracedLog } from './tracing.ts';

export type Telemetry = {
  readonly logger: Logger & DetailLogger;
  readonly figures: Figures;
  /** null: no collector is named, and nothing is traced. */
  readonly tracer: Tracer | null;
};

/** Closed, at most two seconds, by `undo`: put first there, it ends after all that it watches. */
export async function openTelemetry(
  { logLevel, otlpEndpoint }: Pick<Config, 'logLevel' | 'otlpEndpoint'>,
  clock: Clock,
  undo: Undo,
): Promise<Telemetry> {
  const traced = { tracer: null as Tracer | null };
  const logger = pinoLogger({ level: logLevel, to: 'stdout', context: () => lineOf(traced.tracer) });
  const figures = prometheusFigures({ version: SERVICE.version, runtime: runtimeText() });
  if (otlpEndpoint !== null) {
    const { otlpTracer } = await import('#src/adapters/telemetry/otlp.ts');
    const { name, version } = SERVICE;
    const exported = toldOnce(logger, figures);
    const service = { name, version, instance: randomUUID() };
    const tracer = otlpTracer({ endpoint: otlpEndpoint, service, clock, exported });
    undo.push(() => tracer.close());
    traced.tracer = tracer;
  }
  return { logger, figures, tracer: traced.tracer };
}

function lineOf(tracer: Tracer | null): { readonly traceId?: string } {
  const traceId = tracer?.traceId() ?? null;
  return traceId === null ? {} : { traceId };
}

function runtimeText(): string {
  const { bun, deno } = process.versions;
  return bun === undefined ? `deno ${deno}` : `bun ${bun}`;
}

/** A collector that stays away is worth one line, not one a batch. */
function toldOnce(logger: Logger, figures: Figures): (spans: number, taken: boolean) => void {
  let working = true;
  return (spans, taken) => {
    figures.spansExported(spans, taken);
    if (taken === working) return;
    working = taken;
    if (taken) logger.info('the trace collector takes spans again');
    else logger.warn('the trace collector takes no spans: they are dropped and counted');
  };
}

export function watchedLog(log: EventLog, { figures, tracer }: Telemetry, clock: Clock): EventLog {
  return countedLog(tracer === null ? log : tracedLog(log, tracer), figures, clock);
}

/**
 * Times each append, and counts its events once it is acknowledged: a repeat of an append whose fate was unknown is the
 * first of its calls to be acknowledged, and nobody repeats one that was.
 */
export function countedLog(log: EventLog, figures: Pick<Figures, 'appended'>, clock: Clock): EventLog {
  return {
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
    readStream: (stream, options) => log.readStream(stream, options),
    readAll: (options) => log.readAll(options),
    subscribeAll: (options) => log.subscribeAll(options),
    head: () => log.head(),
    health: () => log.health(),
    close: () => log.close(),
  };
}

function outcomeOf(error: unknown): AppendOutcome {
  if (error instanceof WrongExpectedVersion) return 'conflict';
  return error instanceof EventLogUnavailable ? 'unknown' : 'failed';
}

export type Looks = {
  readonly clock: Pick<Clock, 'sleep'>;
  readonly eventLog: () => Promise<{ readonly ok: boolean }>;
  readonly readModels: () => Promise<{ readonly ok: boolean }>;
  readonly rest: () => Pick<StateNow, 'storage' | 'executionsInFlight' | 'lag'>;
};

/** A part that has not answered by then is as good as away, and a scrape must not wait for it. */
const LOOK_MS = 1000;

/** One look at a time, whoever asks: the parts are not to be worn out by it. */
export function stateLook({ clock, eventLog, readModels, rest }: Looks): () => Promise<StateNow> {
  const isUp = (look: () => Promise<{ readonly ok: boolean }>) =>
    Promise.race([
      look().then(
        ({ ok }) => ok,
        () => false,
      ),
      clock.sleep(LOOK_MS).then(() => false),
    ]);
  let looking: Promise<readonly [boolean, boolean]> | null = null;
  return async () => {
    looking ??= Promise.all([isUp(eventLog), isUp(readModels)]).finally(() => {
      looking = null;
    });
    const [eventLogUp, readModelsUp] = await looking;
    return { eventLogUp, readModelsUp, ...rest() };
  };
}
