// The composition root: the only place where a port meets an adapter, and where the parts start and stop in order.

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import process from 'node:process';
import { Projector } from '#projections/projector.ts';
import { readModels, readModelsUnavailable } from '#projections/read-models.ts';
import { withTree } from '#projections/with-tree.ts';
import { checkpointFile } from '#src/adapters/event-log/checkpoint-file.ts';
import { systemClock, systemEntropy } from '#src/adapters/runtime/clock.ts';
import { serve } from '#src/adapters/runtime/serve.ts';
import { baseUrl as baseUrlOf, type Config } from '#src/config.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { placesOf } from '#src/domain/places.ts';
import type { App } from '#src/http/app.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { unlessAborted } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import { scrubLog } from '#src/usecases/audit/scrub-log.ts';
import { inFlightSlots } from '#src/usecases/execution/process-limits.ts';
import { keepRecovering } from '#src/usecases/execution/recover-jobs.ts';
import { receiptJudge } from '#src/usecases/receipts/judge-receipt.ts';
import { openCheckpoints } from '#src/usecases/transparency/checkpoints.ts';
import { firstComparison } from '#src/usecases/transparency/whole-record.ts';
import { wireApp } from './app.ts';
import { verifierPrimitives, wireKeys } from './keys.ts';
import { checkpointPath, logHistory } from './log-history.ts';
import { type Ending, orderlyEnding, untilIdle } from './shutdown.ts';
import { startError } from './start-errors.ts';
import { openStores, type Stores } from './stores.ts';
import { countedLog, openTelemetry, type Telemetry, tracedLog } from './telemetry.ts';
import { openWitnesses } from './witnesses.ts';

export { CannotListen } from '#src/adapters/runtime/serve.ts';

const DAY_MS = 86_400_000;

export type Service = {
  /** Where it listens: `http://host:port`. */
  readonly url: string;
  readonly baseUrl: string;
  /**
   * Resolves when the embedded read models are open; until then reads wait or answer 503. Rejects if they cannot be
   * opened: the service must end. Resolves at once for a shared database, which may be unavailable for any time.
   */
  readonly opened: Promise<void>;
  /** Rejects if the embedded read models are found damaged: the service must end. */
  readonly damaged: Promise<never>;
  /** Accepts no more requests, finishes what is in flight, also behind its answers, and frees everything: at most 120 s. */
  stop(): Promise<void>;
};

export type StartOptions = {
  /** Give the event log in use up, if it is missing, empty or another: `--begin-new-log`. */
  readonly beginNewLog?: boolean;
  /** How often all stored events are read to find damage; every hour if absent. */
  readonly scrubEveryMs?: number;
  /** After which time without a further block the comparison with the chain stands still; `STANDSTILL_MS` if absent. */
  readonly standstillMs?: number;
};

/** Runs the service from its start until `stop` aborts, also if that is during the start. */
export async function runService(config: Config, stop: AbortSignal, options: StartOptions): Promise<void> {
  const service = await startService(config, stop, options).catch((error: unknown) => {
    if (stop.aborted) return null;
    throw error;
  });
  if (service === null) return;
  const stopped: Promise<unknown> = stop.aborted ? Promise.resolve() : once(stop, 'abort');
  const opened = service.opened.then(() => stopped);
  try {
    await Promise.race([stopped, opened, service.damaged]);
  } catch (error) {
    await service.stop().catch(() => undefined);
    throw error;
  }
  await service.stop();
}

/** Resolves when the service listens. Closes whatever was opened if it cannot start, or if `stop` aborts before. */
export async function startService(
  config: Config,
  stop?: AbortSignal,
  options: StartOptions = {},
): Promise<Service> {
  stop?.throwIfAborted();
  const clock = systemClock();
  const ending = orderlyEnding(clock);
  stop?.addEventListener('abort', ending.abort, { once: true });
  try {
    return await start(config, clock, ending, options);
  } catch (error) {
    ending.abort();
    // The error of the start is reported, not one of its undoing.
    await ending.end().catch(() => undefined);
    throw startError(error);
  } finally {
    stop?.removeEventListener('abort', ending.abort);
  }
}

async function start(config: Config, clock: Clock, ending: Ending, options: StartOptions): Promise<Service> {
  const telemetry = await openTelemetry(config, clock, ending);
  const { logger } = telemetry;
  // Added first, so it runs last.
  ending.push(async () => logger.info('the service has ended'));
  const record = await openRecord(config, clock, ending, telemetry, options);
  const { stores } = record;
  const listens = Promise.withResolvers<void>();
  const work = startWork(config, ending, record, listens.promise, options);
  const { port, baseUrl } = await listen(config, ending, telemetry, record, work, options);
  ending.signal.throwIfAborted();
  if (config.egress.allowCidrs.length > 0)
    logger.warn('EGRESS_ALLOW_CIDRS allows non-public targets; use it for development only');
  logger.info('listening', {
    service: SERVICE.name,
    version: SERVICE.version,
    mode: config.mode,
    listen: `${config.listen.host}:${port}`,
    baseUrl,
    storage: stores.driver,
  });
  listens.resolve();
  return {
    url: baseUrlOf({ ...config, publicBaseUrl: null }, port),
    baseUrl,
    ...embeddedRows(stores, logger),
    stop() {
      const inFlight = work.slots.inFlight();
      logger.info('the service stops: it finishes what is in flight', { inFlight });
      return ending.end();
    },
  };
}

type Record = Awaited<ReturnType<typeof openRecord>>;

/** The event log, the signing keys that it has announced, and the checkpoints over it. */
async function openRecord(
  config: Config,
  clock: Clock,
  ending: Ending,
  { logger, figures, tracer }: Telemetry,
  { beginNewLog = false }: StartOptions,
) {
  const history = logHistory(config, { begin: beginNewLog });
  const { beforeOpening } = history;
  const stores = await openStores(config, logger, ending, { beforeOpening, alone: beginNewLog });
  const log = countedLog(tracedLog(stores.log, tracer), figures, clock);
  const journal = { log, clock, entropy: systemEntropy(), logger, ending: ending.signal };
  const print = (text: string) => process.stderr.write(`${text}\n`);
  await (beginNewLog ? history.giveUp(log, logger, print) : history.demandLogInUse(log));
  const keys = await wireKeys(config, journal, history);
  ending.push(() => keys.watching);
  const witnesses = await openWitnesses(config, journal, ending.stopping);
  const checkpoints = await openCheckpoints({
    ...journal,
    checkpointSigner: keys.checkpointSigner,
    checkpointKeys: keys.checkpointKeys,
    directory: keys.directory,
    checkpointKeep: config.eventStoreUrl === null ? checkpointFile(checkpointPath(config)) : null,
    successor: history.successor(keys.logId),
    witnesses,
    primitives: verifierPrimitives,
  });
  return { stores, journal, keys, checkpoints, witnesses };
}

/** What runs beside the calls: the projector, recovery, and the search for damage. `listens`: nothing begins before. */
function startWork(
  config: Config,
  ending: Ending,
  { stores, journal, keys, checkpoints }: Record,
  listens: Promise<void>,
  { scrubEveryMs }: StartOptions,
) {
  const { log, clock, logger } = journal;
  const { exclusive } = stores;
  const judgeReceipt = receiptJudge({ log, primitives: verifierPrimitives });
  const { jobs, receipts } = config.retentionDays;
  const projector = new Projector(
    { log, store: stores.readStore, judgeReceipt, clock, logger },
    { retentionMs: { jobs: jobs * DAY_MS, receipts: receipts * DAY_MS }, after: listens },
  );
  ending.push(() => projector.stop());
  const scrub = scrubLog({ ...journal, log: stores.log, after: listens, everyMs: scrubEveryMs });
  const models = readModels({ store: projector, clock, logger, ready: () => projector.ready() });
  const comparison = {
    clock,
    compared: () => projector.compared(),
    isOpening: () => projector.isOpening(),
    compareKept: checkpoints.compareKept,
  };
  const compared = exclusive
    ? Promise.resolve()
    : unlessAborted(listens, ending.signal).then(() => firstComparison(comparison, ending.signal));
  const recordIsWhole = () => compared.then(checkpoints.isWhole);
  const owner = randomUUID();
  const places = placesOf(config.rates.maxInFlight, { hasSchedules: config.schedules !== null });
  const slots = inFlightSlots(places.all, { forRuns: Math.min(1, places.runs) });
  /** Where the rows were when they last had no running job. */
  let withoutRunning: string | null = null;
  const recovery = keepRecovering({
    ...journal,
    owner,
    signer: keys.signer,
    receiptLog: checkpoints.promised,
    exclusive,
    recordIsWhole,
    async candidates(alone) {
      // What died with an earlier process is known only once the read models have all of its events, or all before damage.
      if (alone && projector.stoppedAt() === null && !(await projector.reachedHead()))
        throw readModelsUnavailable();
      const position = projector.position();
      // Rows change with their position only: they are not asked again while nothing happens.
      if (position !== null && position === withoutRunning) return [];
      const found = await models.monitoring.recoveryCandidates(CANDIDATES_MAX);
      withoutRunning = found.length === 0 ? position : null;
      return found;
    },
  });
  return { projector, models, scrub, owner, places, slots, recovery, recordIsWhole };
}

/** Looked at in one sweep; the oldest come first, so a later sweep gets to the others. */
const CANDIDATES_MAX = 1000;

async function listen(
  config: Config,
  ending: Ending,
  telemetry: Telemetry,
  { stores, journal, keys, checkpoints, witnesses }: Record,
  work: ReturnType<typeof startWork>,
  { standstillMs }: StartOptions,
): Promise<{ readonly port: number; readonly baseUrl: string }> {
  const { projector, models, slots, recovery, scrub } = work;
  let signing: ReturnType<typeof checkpoints.keep> | null = null;
  ending.push(async () => {
    await untilIdle({ slots, ...journal }, ending.left());
    await signing?.stop();
    ending.abort();
    await Promise.all([recovery.ended, scrub.ended]);
  });
  ending.signal.throwIfAborted();
  // The port is known only once it is bound, and the links of all answers need it.
  const app = Promise.withResolvers<App>();
  app.promise.catch(() => undefined);
  const { host: hostname, port } = config.listen;
  const listening = await serve(
    async (request, peer) => (await app.promise).fetch(request, peer),
    { hostname, port },
    journal.clock,
  );
  ending.push(() => listening.stop(ending.left()));
  const baseUrl = baseUrlOf(config, listening.port);
  try {
    const ownHost = new URL(baseUrl).host;
    await checkpoints.begin(ownHost);
    signing = checkpoints.keep(ownHost, {
      position: () => projector.position(),
      movedFrom: (position, signal) => projector.progress.movedFrom(position, signal),
      role: () => projector.role(),
      reachedHead: () => projector.reachedHead(),
      checkpointsElsewhere: () => projector.checkpointsElsewhere(),
      withTree: async (run) => withTree(await projector.open(), run),
    });
    const readTile = (level: number, n: number) => models.transparency.tile(level, n);
    const asking = witnesses?.run({ checkpoints, rows: { role: () => projector.role(), readTile } });
    ending.push(async () => asking);
    const { stopping } = ending;
    const { promised: receiptLog } = checkpoints;
    const opened = { config, baseUrl, journal, keys, stores, checkpoints, witnesses, receiptLog };
    const wired = await wireApp({ ...opened, ...work, stopping, telemetry, standstillMs });
    ending.push(() => wired.ended);
    app.resolve(wired.app);
  } catch (error) {
    app.reject(error);
    throw error;
  }
  return { port: listening.port, baseUrl };
}

/**
 * Opening the embedded read models occupies the thread for 0.4 s, so it begins when the service listens. A shared database
 * may be unavailable for any time.
 */
function embeddedRows(
  { readStore, exclusive, damaged: found }: Stores,
  logger: Logger,
): Pick<Service, 'opened' | 'damaged'> {
  const rows = exclusive ? readStore.shared() : Promise.resolve();
  const endsBy = (problem: string) => (cause: unknown) => {
    logger.error(`the embedded read models ${problem}: the service ends`, { cause });
    throw new UnusableReadModels(problem, cause);
  };
  const opened = rows.then(() => undefined, endsBy('cannot be opened'));
  opened.catch(() => undefined);
  const damaged = found.catch(endsBy('are damaged; the next start replays them from the event log'));
  damaged.catch(() => undefined);
  return { opened, damaged };
}

class UnusableReadModels extends OperatorError {
  constructor(problem: string, cause: unknown) {
    super(`the embedded read models ${problem}: ${String((cause as Error)?.message ?? cause)}`, { cause });
  }
}
