// The composition root: the only place where a port meets an adapter, and where the parts start and stop in order.
import { randomUUID } from 'node:crypto';
import { readModels } from '#projections/read-models.ts';
import { startProjections } from '#projections/runner.ts';
import { systemClock, systemEntropy } from './adapters/runtime/clock.ts';
import { serve } from './adapters/runtime/serve.ts';
import { baseUrl as baseUrlOf, type Config } from './config.ts';
import { SERVICE } from './domain/limits.ts';
import type { App } from './http/app.ts';
import type { Logger } from './ports/logger.ts';
import { receiptJudge } from './usecases/judge-receipt.ts';
import { wireApp } from './wiring/app.ts';
import { verifierPrimitives, wireKeys } from './wiring/keys.ts';
import { recoverUntil } from './wiring/recovery.ts';
import { openStores } from './wiring/stores.ts';
import { openTelemetry, watchedLog } from './wiring/telemetry.ts';

export { CannotListen } from './adapters/runtime/serve.ts';
export { createKeyFile, readKeyFile } from './adapters/signing/key-file.ts';
export { rebuildReadModels } from './wiring/rebuild.ts';
export { migrateDatabase } from './wiring/stores.ts';

const DAY_MS = 86_400_000;

export type Service = {
  /** Where it listens: `http://host:port`. */
  readonly url: string;
  /** The base of all links. */
  readonly baseUrl: string;
  /** Accepts nothing more, finishes what is in flight (at most 120 s), frees everything. */
  stop(): Promise<void>;
};

/** Resolves when the service answers. Whatever was opened is closed again where it cannot start. */
export async function startService(config: Config): Promise<Service> {
  const undo: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    return await start(config, undo, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function start(
  config: Config,
  undo: (() => Promise<void>)[],
  stop: () => Promise<void>,
): Promise<Service> {
  const [clock, entropy] = [systemClock(), systemEntropy()];
  const telemetry = await openTelemetry(config, clock, undo);
  const { logger } = telemetry;
  const opened = await openStores(config, logger, undo);
  const stores = { ...opened, log: watchedLog(opened.log, telemetry, clock) };
  const journal = { log: stores.log, clock, entropy, logger };
  const keys = await wireKeys(config, journal);
  const judgeReceipt = receiptJudge({ log: stores.log, primitives: verifierPrimitives });
  const { jobs, receipts } = config.retentionDays;
  const retentionMs = { jobs: jobs * DAY_MS, receipts: receipts * DAY_MS };
  const projecting = { log: stores.log, store: stores.readStore, judgeReceipt, clock, logger };
  const runner = startProjections(projecting, { retentionMs });
  undo.push(() => runner.stop());
  const models = readModels(stores.readStore, clock, runner.ready);

  const ending = new AbortController();
  const parts = { ...journal, ...keys, owner: randomUUID(), ending: ending.signal };
  const recovering = recoverUntil(ending.signal, { ...parts, models, runner, exclusive: stores.exclusive });
  undo.push(async () => {
    ending.abort();
    await recovering;
  });

  // Embedded rows open within a second or two; a shared database may be away for as long as it likes.
  if (stores.exclusive) await stores.readStore.open();
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
  undo.push(() => listening.stop());
  const baseUrl = baseUrlOf(config, listening.port);
  try {
    app.resolve(await wireApp({ ...parts, config, baseUrl, stores, models, runner, telemetry }));
  } catch (error) {
    app.reject(error);
    throw error;
  }
  const url = baseUrlOf({ ...config, publicBaseUrl: null }, listening.port);
  announce(config, logger, { listen: `${host}:${listening.port}`, baseUrl, storage: stores.driver });
  return { url, baseUrl, stop };
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
