// The composition root: the only place where a port meets an adapter, and where the parts start and stop in order.

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { readModels } from '#projections/read-models.ts';
import { startProjections } from '#projections/runner.ts';
import { withTree } from '#projections/with-tree.ts';
import { checkpointFile } from '#src/adapters/event-log/checkpoint-file.ts';
import { systemClock, systemEntropy } from '#src/adapters/runtime/clock.ts';
import { serve } from '#src/adapters/runtime/serve.ts';
import { baseUrl as baseUrlOf, type Config } from '#src/config.ts';
import { SERVICE } from '#src/domain/limits.ts';
import type { App } from '#src/http/app.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { succeedsWithin, unlessAborted } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import { inFlightSlots } from '#src/usecases/execution/concurrency.ts';
import { receiptJudge } from '#src/usecases/receipts/judge-receipt.ts';
import { openCheckpoints, type TreeRows } from '#src/usecases/transparency/checkpoints.ts';
import { wireApp } from './app.ts';
import { verifierPrimitives, wireKeys } from './keys.ts';
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

/** Runs the service from its start until `stop` aborts, also if that is during the start. */
export async function runService(config: Config, stop: AbortSignal): Promise<void> {
  const service = await startService(config, stop).catch((error: unknown) => {
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
export async function startService(config: Config, stop?: AbortSignal): Promise<Service> {
  stop?.throwIfAborted();
  const clock = systemClock();
  const ending = orderlyEnding(clock);
  stop?.addEventListener('abort', ending.abort, { once: true });
  try {
    return await start(config, clock, ending);
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

async function start(config: Config, clock: Clock, ending: Ending): Promise<Service> {
  const entropy = systemEntropy();
  const primitives = verifierPrimitives;
  const telemetry = await openTelemetry(config, clock, ending);
  const { logger, figures, tracer } = telemetry;

  // Added first, so it runs last.
  ending.push(async () => logger.info('the service has ended'));
  const stores = await openStores(config, logger, ending);
  const { readStore, exclusive } = stores;
  const log = countedLog(tracedLog(stores.log, tracer), figures, clock);
  const journal = { log, clock, entropy, logger, ending: ending.signal };

  const keys = await wireKeys(config, journal);
  ending.push(() => keys.watching);
  const checkpoints = await openCheckpoints({
    ...journal,
    ...keys,
    checkpointKeep:
      config.eventStoreUrl === null ? checkpointFile(join(config.dataDir, 'checkpoint.note')) : null,
    primitives,
  });

  const judgeReceipt = receiptJudge({ log, primitives });
  const { jobs, receipts } = config.retentionDays;
  const retentionMs = { jobs: jobs * DAY_MS, receipts: receipts * DAY_MS };
  const listens = Promise.withResolvers<void>();
  const runner = startProjections(
    { log, store: readStore, judgeReceipt, clock, logger },
    { retentionMs, after: listens.promise },
  );
  ending.push(() => runner.stop());
  const models = readModels({ store: runner, clock, logger, ready: runner.ready });

  const owner = randomUUID();
  const slots = inFlightSlots(config.rates.maxInFlight);
  const closing = { ...journal, owner, slots, signer: keys.signer, receiptLog: checkpoints.promised };
  const treeRows: TreeRows = {
    position: runner.position,
    role: runner.role,
    reachedHead: runner.reachedHead,
    checkpointsElsewhere: runner.checkpointsElsewhere,
    withTree: async (work) => withTree(await runner.open(), work),
  };
  const compareOnce = async () => {
    // What is in other generations is known when this one is open.
    await runner.open();
    await checkpoints.look(treeRows, false);
  };
  // What a shared database knows of a lost history is read before the first call is taken, if it answers soon.
  const compared = exclusive
    ? Promise.resolve()
    : unlessAborted(
        listens.promise.then(() => succeedsWithin(FIRST_LOOK_MS, compareOnce())),
        ending.signal,
      );
  const recordIsWhole = () => compared.then(checkpoints.isWhole);
  const recovery = startRecovery(ending.signal, { ...closing, models, runner, exclusive, recordIsWhole });
  let signing: ReturnType<typeof checkpoints.keep> | null = null;
  ending.push(async () => {
    await untilIdle({ slots, log, clock, logger }, ending.left());
    await signing?.stop();
    ending.abort();
    await recovery.ended;
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
    const running = { owner, slots, recovery, stopping, receiptLog, recordIsWhole, checkpoints, telemetry };
    const wired = await wireApp({ config, baseUrl, journal, keys, stores, models, runner, ...running });
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

/** As long as the quotas wait for it. */
const FIRST_LOOK_MS = 2000;

class UnusableReadModels extends OperatorError {
  constructor(problem: string, cause: unknown) {
    super(`the embedded read models ${problem}: ${String((cause as Error)?.message ?? cause)}`, { cause });
  }
}
