// The HTTP application over its use cases: each group of routes is given what it works with, by name.
import { describeAddress } from '#src/adapters/outbound/addresses.ts';
import { memoryQuota } from '#src/adapters/quota/memory.ts';
import { assetText } from '#src/assets.ts';
import type { Config } from '#src/config.ts';
import { isInside } from '#src/domain/destination/addresses.ts';
import { PRICE } from '#src/domain/limits.ts';
import type { Ledger } from '#src/domain/payment/ledger.ts';
import { toJwk } from '#src/domain/signing-keys/keys.ts';
import { type App, type AppDeps, createApp } from '#src/http/app.ts';
import type { HttpSettings } from '#src/http/deps.ts';
import { iso } from '#src/lib/iso.ts';
import type { Payments } from '#src/ports/payments.ts';
import type { Quota } from '#src/ports/quota.ts';
import { targetQuota } from '#src/usecases/decisions/judge-request.ts';
import { storedReceipts } from '#src/usecases/receipts/stored-receipts.ts';
import { RECENT_MS } from '#src/usecases/reconciliation/judge-open.ts';
import { chainReconciler } from '#src/usecases/reconciliation/reconciler.ts';
import { type Transparency, transparency } from '#src/usecases/transparency/proofs.ts';
import type { AppParts } from './app-parts.ts';
import { wireDecisions } from './decisions.ts';
import { wireExecution, wirePayments } from './execution.ts';
import { wireHealth } from './health.ts';
import { verifierPrimitives } from './keys.ts';
import { publishedLibrary } from './library.ts';
import { cidrs, type Targets, wireTargets } from './targets.ts';

/** `ended`: resolves when `stopping` has aborted and no comparison with the chain is under way. */
export async function wireApp(
  parts: AppParts,
): Promise<{ readonly app: App; readonly ended: Promise<void> }> {
  const { config, baseUrl, journal, keys, models, checkpoints, witnesses, stopping, standstillMs } = parts;
  const { clock, entropy, logger } = journal;
  const { figures, tracer, logger: detail } = parts.telemetry;
  const targets = await wireTargets(config, baseUrl, { ...journal, places: parts.places });
  const quota = await wireQuota(parts);
  const shared = { settings: settingsOf(parts, targets), targets, quota };
  const { settings } = shared;
  const paying = await wirePayments(parts);
  const { payments, chain } = paying;
  const lookUp: Payments['lookUp'] = (...given) => payments.lookUp(...given);
  const ledger = () => ledgerOf(parts);
  const reconciler =
    chain && chainReconciler({ ...journal, ...chain, ledger, lookUp, stopping, standstillMs });
  const tree = transparency({
    rows: models.transparency,
    keys: keys.directory,
    primitives: verifierPrimitives,
    latest: () => checkpoints.latest()?.note ?? null,
    latestCosigned: witnesses === null ? undefined : () => witnesses.latest(),
    clock,
    stands: () => (checkpoints.standing()?.problem ?? null) === null,
  });
  const { routes: execute, execution, resolverOf } = wireExecution(parts, shared, paying, tree);
  const schedules =
    config.schedules === null
      ? null
      : await (await import('./schedules.ts')).wireSchedules(
          parts,
          { execution, resolverOf },
          paying.protocol,
          config.schedules.horizonDays,
        );
  const app = createApp({
    request: {
      clock,
      entropy,
      logger,
      settings,
      operators: { figures, tracer, detail },
      executionsInFlight: parts.slots.inFlight,
    },
    execute,
    decisions: wireDecisions(parts, shared),
    reads: wireReads(parts, settings, tree),
    log: {
      clock,
      settings,
      progress: parts.projector,
      transparency: tree,
      library: publishedLibrary,
      jwks: async () => ({ keys: keys.directory.list().map(toJwk) }),
      agentKeys: () => (config.webBotAuth ? keys.agentSigner.published() : []),
      entropy,
    },
    health: wireHealth(parts, shared, paying, reconciler),
    ...(schedules && { schedules: schedules.routes }),
  });
  return { app, ended: Promise.all([reconciler?.run(), schedules?.ended]).then(() => undefined) };
}

/** Of each kind of candidates; with entries of open payments about 40 MB. The oldest come first. */
const CANDIDATES_MAX = 20_000;

/** As the rows have it that contain what this process has appended, if they are there within a second. */
async function ledgerOf({ models, projector, journal: { clock } }: AppParts): Promise<Ledger> {
  await projector.reachedHead();
  return models.payment.ledger(CANDIDATES_MAX, iso(clock.now() - RECENT_MS));
}

/** Shared by all processes with one Postgres (waits up to 2 s for it), otherwise in the memory of this process. */
async function wireQuota({ stores: { readStore }, keys, journal }: AppParts): Promise<Quota> {
  if (readStore.disposable) return memoryQuota();
  const { postgresQuota } = await import('#src/adapters/quota/postgres.ts');
  const { logger, ending } = journal;
  return postgresQuota({ keyedHash: keys.keyedHash, logger, ending, open: () => readStore.shared() });
}

function wireReads(
  { config, journal, keys, models, projector, checkpoints, witnesses }: AppParts,
  settings: HttpSettings,
  tree: Transparency,
): AppDeps['reads'] {
  const { log, clock, logger } = journal;
  const { job, receipt, proof, monitoring, trust, transparency, store } = models;
  const rows = {
    receipt: receipt.find,
    job: job.findForVerification,
    jobOfReceipt: transparency.jobOf,
  };
  const stored = storedReceipts(rows, {
    log,
    keys: keys.directory,
    primitives: verifierPrimitives,
    transparency: tree,
    policy: config.witnesses?.policy ?? null,
    clock,
    reachedHead: () => projector.reachedHead(),
  });
  return {
    clock,
    logger,
    settings,
    progress: projector,
    transparency: tree,
    checkpointStanding: checkpoints.standing,
    witnesses: () => witnesses?.status() ?? null,
    verifyScript: assetText('src/verify/built/page.js'),
    // Loaded on use: the known assets are in a large package.
    amountText: async (paid) => (await import('./money.ts')).showAmount(paid),
    verifyJob: stored.verifyJob,
    verifyReceipt: stored.verifyReceipt,
    reads: {
      job,
      proof,
      monitoring,
      trust,
      store,
      receipt: { find: stored.find, countUnverified: () => store.countUnverified() },
    },
  };
}

/** What a call costs; in demo mode what a paid call would cost. */
function offerOf(x402: Config['x402']): HttpSettings['offer'] {
  if (x402 === null) return { scheme: PRICE.scheme, network: PRICE.network, price: PRICE.display };
  return { scheme: PRICE.scheme, network: x402.network, price: `$${x402.priceUsd}` };
}

function settingsOf({ config, baseUrl, stores }: AppParts, targets: Targets): HttpSettings {
  const proxies = cidrs(config.trustedProxies);
  const { targetPerMinute, clientPerMinute, readsPerMinute, maxInFlight } = config.rates;
  return {
    baseUrl,
    mode: config.mode,
    storage: { driver: stores.driver, durable: true },
    offer: offerOf(config.x402),
    policyMode: config.policy.mode,
    targetQuota: targetQuota({ rules: targets.rules, targetQuotaPerMinute: targetPerMinute }),
    rateLimitPerMinute: clientPerMinute,
    readsPerMinute,
    maxInFlight,
    returnsResponses: config.returnsResponses,
    returnedHeaders: config.returnedHeaders,
    retentionDays: config.retentionDays,
    witnesses: config.witnesses && {
      configured: config.witnesses.policy.witnesses.length,
      quorum: config.witnesses.policy.quorum?.name ?? 'none',
    },
    ...(config.schedules && { schedules: config.schedules }),
    trustsProxy(address) {
      if (proxies.length === 0) return false;
      const facts = describeAddress(address);
      return facts !== null && proxies.some((cidr) => isInside(facts.bytes, cidr));
    },
    egressExemption: config.egress.allowCidrs.length > 0,
    metricsPublic: config.metricsPublic,
  };
}
