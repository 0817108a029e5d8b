import { readFileSync } from 'node:fs';
import type { Projector } from '#projections/projector.ts';
import type { ReadModels } from '#projections/read-models.ts';
import { describeAddress } from '#src/adapters/outbound/addresses.ts';
import { demoPayments } from '#src/adapters/payments/demo.ts';
import { memoryQuota } from '#src/adapters/quota/memory.ts';
import { type Config, ConfigError } from '#src/config.ts';
import { PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import { damagedPlace } from '#src/domain/damage.ts';
import { isInside } from '#src/domain/destination/policy.ts';
import { toHex } from '#src/domain/encoding.ts';
import { PRICE } from '#src/domain/limits.ts';
import { healthReport, type ReadModelHealth } from '#src/domain/monitoring/health.ts';
import type { ReceiptLog } from '#src/domain/receipt/payload.ts';
import { didOf, toJwk } from '#src/domain/signing-keys/keys.ts';
import { type App, createApp } from '#src/http/app.ts';
import type { HttpSettings } from '#src/http/deps.ts';
import { EventDamaged } from '#src/ports/event-log.ts';
import type { PaymentProtocol } from '#src/ports/payment-protocol.ts';
import type { Payments } from '#src/ports/payments.ts';
import type { Scrub } from '#src/usecases/audit/scrub-log.ts';
import { checkPolicy } from '#src/usecases/decisions/check-policy.ts';
import { decideWebhook } from '#src/usecases/decisions/decide-webhook.ts';
import { targetQuota } from '#src/usecases/decisions/judge-request.ts';
import type { JournalDeps } from '#src/usecases/event-streams.ts';
import { claimTurns, type Slots } from '#src/usecases/execution/concurrency.ts';
import { executeGuidedWebhook } from '#src/usecases/execution/execute-guided-webhook.ts';
import { executeWebhook } from '#src/usecases/execution/execute-webhook.ts';
import { streamWatch } from '#src/usecases/execution/recover-jobs.ts';
import { guessLimit, unconfirmedPayments } from '#src/usecases/execution/remembered-payments.ts';
import { VerifyLimit } from '#src/usecases/execution/verify-limit.ts';
import { handOffBrowser } from '#src/usecases/planning/hand-off-browser.ts';
import { previewSchedule } from '#src/usecases/planning/preview-schedule.ts';
import type { Checkpoints } from '#src/usecases/transparency/checkpoints.ts';
import { transparency } from '#src/usecases/transparency/proofs.ts';
import type { RecordDeps } from '#src/usecases/transparency/whole-record.ts';
import { type Keys, verifierPrimitives } from './keys.ts';
import { decisionFacts, wireReads } from './reads.ts';
import { type Reconciling, startReconciling } from './reconciling.ts';
import type { RunningRecovery } from './recovery.ts';
import type { Stores } from './stores.ts';
import { cidrs, type Targets, wireTargets } from './targets.ts';
import { type Telemetry, tracedOutbound, tracedPayments, tracedResolver } from './telemetry.ts';

export type AppParts = {
  readonly config: Config;
  readonly baseUrl: string;
  readonly owner: string;
  readonly journal: JournalDeps & { readonly ending: AbortSignal };
  readonly stopping: AbortSignal;
  readonly keys: Keys;
  readonly stores: Stores;
  readonly models: ReadModels;
  readonly projector: Projector;
  readonly slots: Slots;
  readonly recovery: Pick<RunningRecovery, 'foundRunning' | 'unclosable'>;
  readonly receiptLog: () => ReceiptLog | null;
  readonly checkpoints: Pick<Checkpoints, 'latest' | 'standing'>;
  readonly recordIsWhole: RecordDeps['recordIsWhole'];
  readonly telemetry: Telemetry;
  /** null: the event log verifies its files itself. */
  readonly scrub: Pick<Scrub, 'lastPass'> | null;
  readonly standstillMs: number | undefined;
};

export async function wireApp(
  parts: AppParts,
): Promise<{ readonly app: App; readonly reconciling: Reconciling }> {
  const { config, baseUrl, owner, journal, stores, models, projector, slots } = parts;
  const { recovery, receiptLog, recordIsWhole, checkpoints } = parts;
  const { log, clock, entropy, logger, ending } = journal;
  const { signer, keyedHash, directory } = parts.keys;
  const { figures, tracer, logger: detail } = parts.telemetry;

  const targets = await wireTargets(config, baseUrl, clock, ending);
  const { rules } = targets;
  const resolver = tracedResolver(targets.resolver, tracer);
  const freeResolver = tracedResolver(targets.freeResolver, tracer);
  const outbound = tracedOutbound(targets.outbound, tracer);
  // Shared by all processes with one Postgres (waits up to 2 s for it), otherwise in the memory of this process.
  const { readStore } = stores;
  const quota = readStore.disposable
    ? memoryQuota()
    : await (await import('#src/adapters/quota/postgres.ts')).postgresQuota({
        keyedHash,
        logger,
        ending,
        open: () => readStore.shared(),
      });
  const { stopping } = parts;
  const paying = await wirePayments(config.x402, { baseUrl, clock, logger, signer, stopping });
  const payments = tracedPayments(paying.payments, tracer);
  const { standstillMs } = parts;
  const reconciling = startReconciling({
    ...journal,
    chain: paying.chain,
    payments,
    stopping,
    standstillMs,
  });
  const settings = settingsOf(parts, targets);

  const execution = {
    log,
    clock,
    entropy,
    logger,
    ending,
    owner,
    baseUrl,
    signer,
    keyedHash,
    receiptLog,
    rules,
    describeAddress,
    pseudonym: targets.pseudonym,
    resolver,
    outbound,
    payments,
    quota,
    targetQuotaPerMinute: config.rates.targetPerMinute,
    slots,
    exclusive: stores.exclusive,
    watch: streamWatch(clock),
    foundRunning: recovery.foundRunning,
    recordIsWhole,
    unconfirmed: unconfirmedPayments(),
    guesses: guessLimit(clock),
    confirmWaitMs: config.x402?.confirmWaitMs ?? 0,
    stopping,
    takeTurn: claimTurns(clock),
    verifies: new VerifyLimit(clock),
  };

  const receiptTree = transparency({
    rows: models.transparency,
    keys: directory,
    primitives: verifierPrimitives,
    latest: () => checkpoints.latest()?.note ?? null,
    clock,
    stands: () => (checkpoints.standing()?.problem ?? null) === null,
  });
  const reads = wireReads({
    models,
    log,
    keys: directory,
    primitives: verifierPrimitives,
    transparency: receiptTree,
    clock,
    reachedHead: () => projector.reachedHead(),
  });

  // Free checks have a resolver of their own. In demo mode the payer is known: all callers are one.
  const payer = config.mode === 'demo' ? 'demo' : null;
  const { targetQuotaPerMinute } = execution;
  const judging = { rules, describeAddress, resolver: freeResolver, quota, targetQuotaPerMinute, payer };
  const market = decisionFacts({
    models,
    checkpointStanding: checkpoints.standing,
    clock,
    mode: config.mode,
    storage: settings.storage,
  });
  const offer = { ...settings.offer, payTo: config.x402?.payTo ?? null };
  const deciding = {
    ...judging,
    recordIsWhole,
    log,
    clock,
    entropy,
    logger,
    ending,
    keyedHash,
    market,
    offer,
  };
  const handingOff = { ...judging, clock, entropy };

  /** A database that answers but provides no rows (no such privilege, no such table) is not ok. */
  async function readModelHealth(): Promise<ReadModelHealth> {
    if (!(await readStore.health()).ok || !projector.readable()) return { ok: false, problem: 'unavailable' };
    return projector.state === 'rebuilding' ? { ok: false, problem: 'rebuilding' } : { ok: true };
  }
  async function health() {
    const [eventLog, rows, facilitator, chain] = await Promise.all([
      log.health(),
      readModelHealth(),
      payments.health(),
      reconciling.health(),
    ]);
    const standing = checkpoints.standing();
    return healthReport({
      eventLog,
      signingKey: parts.keys.health(),
      checkpoint: standing && { problem: standing.problem, waitingMs: standing.ageMs },
      readModels: rows,
      projection: { ...projector.lag(), stoppedAt: stoppedAt(projector.stoppedAt()) },
      facilitator,
      chain,
    });
  }
  async function exposition() {
    const [{ checks }, { damaged }] = await Promise.all([health(), log.health()]);
    const scrubbedAt = parts.scrub?.lastPass() ?? null;
    const newest = checkpoints.latest();
    const waitingMs = checkpoints.standing()?.ageMs ?? 0;
    return figures.exposition({
      storage: stores.driver,
      checks,
      eventLog: { damagedEvents: damaged?.count ?? 0, scrubbedAt },
      checkpoint: newest && { size: newest.size, signedAt: newest.signedAt, waitingMs },
      executionsInFlight: slots.inFlight(),
      unclosableJobs: recovery.unclosable(),
      lag: projector.lag(),
      payments: reconciling.figures(),
    });
  }

  const app = createApp({
    clock,
    entropy,
    logger,
    settings,
    quota,
    payments: paying.protocol,
    clientKey: (address) => toHex(keyedHash.mac('client', address)),
    execute: (input) => executeWebhook(execution, input),
    executeGuided: (input) => executeGuidedWebhook(execution, input),
    decide: (input) => decideWebhook(deciding, input),
    checkPolicy: ({ request }) => checkPolicy(judging, request, payer),
    handOffBrowser: (request) => handOffBrowser(handingOff, request),
    async previewSchedule(request) {
      const { temporalCalendar } = await import('#src/adapters/calendar/temporal.ts');
      return previewSchedule({ ...judging, clock, calendar: temporalCalendar() }, request);
    },
    reads: reads.reads,
    verifyJob: reads.verifyJob,
    verifyReceipt: reads.verifyReceipt,
    progress: projector,
    executionsInFlight: slots.inFlight,
    jwks: async () => ({ keys: directory.list().map(toJwk) }),
    transparency: receiptTree,
    checkpointStanding: checkpoints.standing,
    verifyScript: readFileSync(new URL('../verify/built/page.js', import.meta.url), 'utf8'),
    health,
    operators: { figures, tracer, detail, exposition },
  });
  return { app, reconciling };
}

/**
 * None in demo mode (`protocol` null: calls are free), otherwise x402, whose packages are loaded only then. Throws
 * `ConfigError` if the values do not describe a payment.
 */
async function wirePayments(
  x402: Config['x402'],
  {
    baseUrl,
    clock,
    logger,
    signer,
    stopping,
  }: Pick<JournalDeps, 'clock' | 'logger'> &
    Pick<Keys, 'signer'> & { readonly baseUrl: string; readonly stopping: AbortSignal },
): Promise<{
  readonly payments: Payments;
  readonly protocol: PaymentProtocol | null;
  readonly chain: Parameters<typeof startReconciling>[0]['chain'];
}> {
  if (x402 === null) return { payments: demoPayments(), protocol: null, chain: null };
  const [{ x402Payments }, { UnusableTerms }] = await Promise.all([
    import('#src/adapters/payments/x402.ts'),
    import('#src/adapters/payments/requirements.ts'),
  ]);
  const base = new URL(baseUrl);
  const offerKey = { signer, did: didOf(base.hostname, base.port) };
  const options = { baseUrl, clock, logger, x402, offerKey, stopping, routes: PAID_ROUTES };
  const paid = await x402Payments(options).catch((error: unknown): never => {
    if (!(error instanceof UnusableTerms)) throw error;
    throw new ConfigError([{ variable: TERMS[error.setting], problem: error.message }]);
  });
  // Logs problems of facilitator and clock at the start; nothing waits for it.
  void paid.payments.health();
  const { scan, payee } = paid;
  return { ...paid, chain: { scan, payee, intervalMs: x402.reconcileMs } };
}

const TERMS = {
  network: 'X402_NETWORK',
  asset: 'X402_ASSET',
  priceUsd: 'X402_PRICE',
  rpcUrl: 'X402_RPC_URL',
} as const;

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
    retentionDays: config.retentionDays,
    trustsProxy(address) {
      if (proxies.length === 0) return false;
      const facts = describeAddress(address);
      return facts !== null && proxies.some((cidr) => isInside(facts.bytes, cidr));
    },
    egressExemption: config.egress.allowCidrs.length > 0,
    metricsPublic: config.metricsPublic,
  };
}

/** In words. */
function stoppedAt(damage: ReturnType<Projector['stoppedAt']>): string | null {
  if (damage === null) return null;
  return damage instanceof EventDamaged
    ? `the damaged event at ${damagedPlace(damage.damage)}`
    : 'damage of the event log';
}
