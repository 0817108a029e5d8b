// The HTTP room with everything it is handed: use cases over their adapters, read models, settings.
import type { ReadModels } from '#projections/read-models.ts';
import type { ProjectionRunner } from '#projections/runner.ts';
import { describeAddress } from '../adapters/outbound/addresses.ts';
import { demoPayments } from '../adapters/payments/demo.ts';
import { memoryQuota } from '../adapters/quota/memory.ts';
import type { Config } from '../config.ts';
import { ATTENTION } from '../domain/attention.ts';
import { PRICE } from '../domain/limits.ts';
import { toJwk } from '../domain/receipt/keys.ts';
import { isInside } from '../domain/target/addresses.ts';
import { type App, createApp } from '../http/app.ts';
import type { HttpDeps, HttpSettings } from '../http/deps.ts';
import { checkPolicy } from '../usecases/check-policy.ts';
import { executeWebhook } from '../usecases/execute-webhook.ts';
import type { JournalDeps } from '../usecases/journal.ts';
import { targetQuota } from '../usecases/judge-request.ts';
import { inFlightSlots } from '../usecases/slots.ts';
import { streamWatch } from '../usecases/stream-watch.ts';
import { type Keys, verifierPrimitives } from './keys.ts';
import { wireReads } from './reads.ts';
import type { Stores } from './stores.ts';
import { cidrs, type Targets, wireTargets } from './targets.ts';

export type AppParts = JournalDeps &
  Keys & {
    readonly config: Config;
    readonly baseUrl: string;
    readonly owner: string;
    readonly stores: Stores;
    readonly models: ReadModels;
    readonly runner: ProjectionRunner;
    readonly ending: AbortSignal;
  };

export async function wireApp(parts: AppParts): Promise<App> {
  const { config, baseUrl, clock, ending, stores, models, runner, directory } = parts;
  const targets = await wireTargets(config, baseUrl, clock, ending);
  const quota = memoryQuota();
  // In demo mode it is known who will pay: the one payer that all callers are.
  const demo = config.mode === 'demo';
  const execution = {
    ...parts,
    ...targets,
    quota,
    payments: demoPayments(),
    slots: inFlightSlots(config.rates.maxInFlight),
    watch: streamWatch(clock),
    targetQuotaPerMinute: config.rates.targetPerMinute,
  };
  return createApp({
    ...parts,
    ...wireReads({ models, log: stores.log, keys: directory, primitives: verifierPrimitives }),
    execute: (input) => executeWebhook(execution, input),
    checkPolicy: ({ request }) =>
      checkPolicy({ ...execution, resolver: targets.freeResolver }, request, demo ? 'demo' : null),
    progress: runner,
    jwks: async () => ({ keys: (await directory.list()).map(toJwk) }),
    health: () => health(stores, runner),
    payments: null,
    quota,
    settings: settingsOf(parts, targets),
  });
}

async function health({ log, readStore }: Stores, runner: ProjectionRunner): ReturnType<HttpDeps['health']> {
  const [eventLog, rows] = await Promise.all([log.health(), readStore.health()]);
  const projections = { ok: runner.lag().lagMs <= ATTENTION.lagMs };
  return { eventLog, readModels: rows, projections, facilitator: null };
}

function settingsOf({ config, baseUrl, stores }: AppParts, targets: Targets): HttpSettings {
  const proxies = cidrs(config.trustedProxies);
  const { targetPerMinute, clientPerMinute } = config.rates;
  return {
    baseUrl,
    mode: config.mode,
    storage: { driver: stores.driver, durable: true },
    offer: { scheme: PRICE.scheme, network: PRICE.network, price: PRICE.display },
    policyMode: config.policy.mode,
    targetQuota: targetQuota({ rules: targets.rules, targetQuotaPerMinute: targetPerMinute }),
    rateLimitPerMinute: clientPerMinute,
    trustsProxy(address) {
      const facts = describeAddress(address);
      return facts !== null && proxies.some((cidr) => isInside(facts.bytes, cidr));
    },
    egressExemption: config.egress.allowCidrs.length > 0,
  };
}
