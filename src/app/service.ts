// The composition root: the only place where a port meets an adapter, and where the parts start and stop in order.

import { randomUUID } from 'node:crypto';
import process from 'node:process';
import { Projector } from '#projections/projector.ts';
import { readModels } from '#projections/read-models.ts';
import { withTree } from '#projections/with-tree.ts';
import { checkpointFile } from '#src/adapters/event-log/checkpoint-file.ts';
import { systemClock, systemEntropy } from '#src/adapters/runtime/clock.ts';
import { serve } from '#src/adapters/runtime/serve.ts';
import { baseUrl as baseUrlOf, type Config } from '#src/config.ts';
import { SERVICE } from '#src/domain/limits.ts';
import type { App } from '#src/http/app.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { unlessAborted } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import { scrubLog } from '#src/usecases/audit/scrub-log.ts';
import { inFlightSlots } from '#src/usecases/execution/concurrency.ts';
import { receiptJudge } from '#src/usecases/receipts/judge-receipt.ts';
import { openCheckpoints, type TreeRows } from '#src/usecases/transparency/checkpoints.ts';
import { wireApp } from './app.ts';
import { firstComparison } from './first-comparison.ts';
import { verifierPrimitives, wireKeys } from './keys.ts';
import { checkpointPath, logHistory } from './log-history.ts';
import { startRecovery } from './recovery.ts';
import { type Ending, orderlyEnding, untilIdle } from './shutdown.ts';
import { startError } from './start-errors.ts';
import { openStores } from './stores.ts';
import { countedLog, openTelemetry, tracedLog } from './telemetry.ts';

export { CannotListen } from '#src/adapters/runtime/serve.ts';

const DAY_MS = 86_400_000;

export type Service = {
  /** Where it listens: `http://host:port`. */
  readonly url: string;
  /** The base of all links. */
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
  const stopped = whenAborted(stop);
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

function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

async function start(
  config: Config,
  clock: Clock,
  ending: Ending,
  { beginNewLog = false, scrubEveryMs, standstillMs }: StartOptions,
): Promise<Service> {
  const entropy = systemEntropy();
  const primitives = verifierPrimitives;
  const telemetry = await openTelemetry(config, clock, ending);
  const { logger, figures, tracer } = telemetry;

  // Added first, so it runs last.
  ending.push(async () => logger.info('the service has ended'));
  const history = logHistory(config, { begin: beginNewLog });
  const { beforeOpening } = history;
  const stores = await openStores(config, logger, ending, { beforeOpening, alone: beginNewLog });
  const { readStore, exclusive } = stores;
  const log = countedLog(tracedLog(stores.log, tracer), figures, clock);
  const journal = { log, clock, entropy, logger, ending: ending.signal };

  const print = (text: string) => process.stderr.write(`${text}\n`);
  await (beginNewLog ? history.giveUp(log, logger, print) : history.demandLogInUse(log));
  const keys = await wireKeys(config, journal, history);
  ending.push(() => keys.watching);
  const checkpoints = await openCheckpoints({
    ...journal,
    ...keys,
    checkpointKeep: config.eventStoreUrl === null ? checkpointFile(checkpointPath(config)) : null,
    successor: history.successor(keys.logId),
    primitives,
  });

  const judgeReceipt = receiptJudge({ log, primitives });
  const { jobs, receipts } = config.retentionDays;
  const retentionMs = { jobs: jobs * DAY_MS, receipts: receipts * DAY_MS };
  const listens = Promise.withResolvers<void>();
  const projector = new Projector(
    { log, store: readStore, judgeReceipt, clock, logger },
    { retentionMs, after: listens.promise },
  );
  ending.push(() => projector.stop());
  // EventStoreDB verifies its files itself.
  const scrub =
    config.eventStoreUrl === null
      ? scrubLog({ ...journal, log: stores.log, after: listens.promise, everyMs: scrubEveryMs })
      : null;
  const models = readModels({ store: projector, clock, logger, ready: () => projector.ready() });

  const owner = randomUUID();
  const slots = inFlightSlots(config.rates.maxInFlight);
  const closing = { ...journal, owner, slots, signer: keys.signer, receiptLog: checkpoints.promised };
  const treeRows: TreeRows = {
    position: () => projector.position(),
    role: () => projector.role(),
    reachedHead: () => projector.reachedHead(),
    checkpointsElsewhere: () => projector.checkpointsElsewhere(),
    withTree: async (work) => withTree(await projector.open(), work),
  };
  const comparison = {
    compared: () => projector.compared(),
    isOpening: () => projector.isOpening(),
    compareKept: checkpoints.compareKept,
  };
  const compared = exclusive
    ? Promise.resolve()
    : unlessAborted(listens.promise, ending.signal).then(() => firstComparison(comparison, ending.signal));
  const recordIsWhole = () => compared.then(checkpoints.isWhole);
  const recovery = startRecovery(ending.signal, { ...closing, models, projector, exclusive, recordIsWhole });
  let signing: ReturnType<typeof checkpoints.keep> | null = null;
  ending.push(async () => {
    await untilIdle({ slots, log, clock, logger }, ending.left());
    await signing?.stop();
    ending.abort();
    await Promise.all([recovery.ended, scrub?.ended]);
  });

  ending.signal.throwIfAborted();
  // The port is known only once it is bound, and the links of all answers need it.
  const app = Promise.withResolvers<App>();
  app.promise.catch(() => undefined);
  const { host, port } = config.listen;
  const listening = await serve(
    async (request, peer) => (await app.promise).fetch(request, peer),
    { hostname: host, port },
    clock,
  );
  ending.push(() => listening.stop(ending.left()));
  const baseUrl = baseUrlOf(config, listening.port);
  try {
    const ownHost = new URL(baseUrl).host;
    await checkpoints.begin(ownHost);
    signing = checkpoints.keep(ownHost, treeRows);
    const { stopping } = ending;
    const { promised: receiptLog } = checkpoints;
    const running = {
      owner,
      slots,
      recovery,
      stopping,
      receiptLog,
      recordIsWhole,
      checkpoints,
      telemetry,
      scrub,
      standstillMs,
    };
    const wired = await wireApp({ config, baseUrl, journal, keys, stores, models, projector, ...running });
    ending.push(() => wired.reconciling.ended);
    app.resolve(wired.app);
  } catch (error) {
    app.reject(error);
    throw error;
  }
  ending.signal.throwIfAborted();
  const url = baseUrlOf({ ...config, publicBaseUrl: null }, listening.port);
  if (config.egress.allowCidrs.length > 0) {
    logger.warn('EGRESS_ALLOW_CIDRS allows non-public targets; use it for development only');
  }
  logger.info('listening', {
    service: SERVICE.name,
    version: SERVICE.version,
    mode: config.mode,
    listen: `${host}:${listening.port}`,
    baseUrl,
    storage: stores.driver,
  });
  listens.resolve();
  // Opening the embedded read models occupies the thread for 0.4 s, so it begins here. A shared database may be
  // unavailable for any time.
  const rows = exclusive ? readStore.shared() : Promise.resolve();
  const endsBy = (problem: string) => (cause: unknown) => {
    logger.error(`the embedded read models ${problem}: the service ends`, { cause });
    throw new UnusableReadModels(problem, cause);
  };
  const opened = rows.then(() => undefined, endsBy('cannot be opened'));
  opened.catch(() => undefined);
  const damaged = stores.damaged.catch(endsBy('are damaged; the next start replays them from the event log'));
  damaged.catch(() => undefined);
  return {
    url,
    baseUrl,
    opened,
    damaged,
    stop() {
      logger.info('the service stops: it finishes what is in flight', { inFlight: slots.inFlight() });
      return ending.end();
    },
  };
}

class UnusableReadModels extends OperatorError {
  constructor(problem: string, cause: unknown) {
    super(`the embedded read models ${problem}: ${String((cause as Error)?.message ?? cause)}`, { cause });
  }
}
