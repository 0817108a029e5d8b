// The composition root: the only place where a port meets an adapter, and where the parts start and stop in order.
import { randomUUID } from 'node:crypto';
import { readModels } from '#projections/read-models.ts';
import { startProjections } from '#projections/runner.ts';
import { systemClock, systemEntropy } from '#src/adapters/runtime/clock.ts';
import { serve } from '#src/adapters/runtime/serve.ts';
import { baseUrl as baseUrlOf, type Config } from '#src/config.ts';
import { SERVICE } from '#src/domain/limits.ts';
import type { App } from '#src/http/app.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import { inFlightSlots } from '#src/usecases/execution/admission.ts';
import { receiptJudge } from '#src/usecases/receipts/judge-receipt.ts';
import { wireApp } from './app.ts';
import { readCheckpoints, signCheckpoints } from './checkpoints.ts';
import { verifierPrimitives, wireKeys } from './keys.ts';
import { recoverUntil } from './recovery.ts';
import { type Ending, orderlyEnding, untilIdle } from './shutdown.ts';
import { openStores } from './stores.ts';
import { openTelemetry, watchedLog } from './telemetry.ts';

export { CannotListen } from '#src/adapters/runtime/serve.ts';
export { createKeyFile, readKeyFile } from '#src/adapters/signing/key-file.ts';
export { pruneReadModels, rebuildReadModels } from './rebuild.ts';
export { migrateDatabase } from './stores.ts';

const DAY_MS = 86_400_000;

export type Service = {
  /** Where it listens: `http://host:port`. */
  readonly url: string;
  /** The base of all links. */
  readonly baseUrl: string;
  /** Accepts nothing more, finishes what is in flight, behind its answers too, and frees everything: at most 120 s. */
  stop(): Promise<void>;
};

/** A stop was asked for while the service started: what was opened is closed again. */
class StopAsked extends Error {}

/** The service from its start until `asked` aborts, also where that is during the start. */
export async function runService(config: Config, asked: AbortSignal): Promise<void> {
  try {
    const service = await startService(config, asked);
    await whenAborted(asked);
    await service.stop();
  } catch (error) {
    if (!(error instanceof StopAsked)) throw error;
  }
}

/**
 * Resolves when the service answers. Whatever was opened is closed again where it cannot start, or where `asked`
 * aborts before.
 */
export async function startService(config: Config, asked?: AbortSignal): Promise<Service> {
  const clock = systemClock();
  const ending = orderlyEnding(clock);
  try {
    const started = start(config, clock, ending);
    if (asked === undefined) return await started;
    const stopped = whenAborted(asked).then(() => {
      throw new StopAsked();
    });
    return await Promise.race([started, stopped]);
  } catch (error) {
    ending.abort();
    // What the start met is to be told, not what its undoing met.
    await ending.end().catch(() => undefined);
    throw error;
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
  const telemetry = await openTelemetry(config, clock, ending);
  const { logger } = telemetry;
  const opened = await openStores(config, logger, ending);
  const stores = { ...opened, log: watchedLog(opened.log, telemetry, clock) };
  const journal = { log: stores.log, clock, entropy, logger, ending: ending.signal };
  const keys = await wireKeys(config, journal);
  ending.push(() => keys.watching);
  const primitives = verifierPrimitives;
  const checkpoints = await readCheckpoints(config, { ...journal, ...keys });
  const judgeReceipt = receiptJudge({ log: stores.log, primitives });
  const { jobs, receipts } = config.retentionDays;
  const retentionMs = { jobs: jobs * DAY_MS, receipts: receipts * DAY_MS };
  const projecting = { log: stores.log, store: stores.readStore, judgeReceipt, clock, logger };
  const runner = startProjections(projecting, { retentionMs });
  ending.push(() => runner.stop());
  const models = readModels(runner, clock, runner.ready);

  const slots = inFlightSlots(config.rates.maxInFlight);
  const parts = { ...journal, ...keys, owner: randomUUID(), slots, receiptLog: checkpoints.promised };
  const recovering = recoverUntil(ending.signal, { ...parts, models, runner, exclusive: stores.exclusive });
  const signing = signCheckpoints({ checkpoints, models, runner, clock, logger });
  ending.push(async () => {
    await untilIdle(parts, ending.left());
    await signing.stop();
    ending.abort();
    await recovering;
  });

  // Embedded rows open within a second or two; a shared database may be away for as long as it likes.
  if (stores.exclusive) await stores.readStore.shared();
  ending.signal.throwIfAborted();
  // The port is known only once it is bound, and the links of all answers need it.
  const app = Promise.withResolvers<App>();
  app.promise.catch(() => undefined);
  const { host, port } = config.listen;
  const listen = { hostname: host, port };
  const listening = await serve(
    async (request, peer) => (await app.promise).fetch(request, peer),
    listen,
    clock,
  );
  ending.push(() => listening.stop(ending.left()));
  const baseUrl = baseUrlOf(config, listening.port);
  try {
    await checkpoints.begin(new URL(baseUrl).host);
    app.resolve(await wireApp({ ...parts, config, baseUrl, stores, models, runner, telemetry, checkpoints }));
  } catch (error) {
    app.reject(error);
    throw error;
  }
  ending.signal.throwIfAborted();
  const url = baseUrlOf({ ...config, publicBaseUrl: null }, listening.port);
  announce(config, logger, { listen: `${host}:${listening.port}`, baseUrl, storage: stores.driver });
  return { url, baseUrl, stop: ending.end };
}

function announce(
  config: Config,
  logger: Logger,
  at: { listen: string; baseUrl: string; storage: string },
): void {
  if (config.egress.allowCidrs.length > 0) {
    logger.warn('EGRESS_ALLOW_CIDRS lets non-public targets through: for development only');
  }
  logger.info('listening', { service: SERVICE.name, version: SERVICE.version, mode: config.mode, ...at });
}
