// The HTTP room with everything it is handed: use cases over their adapters, read models, settings.
import { readFileSync } from 'node:fs';
import type { ReadModels } from '#projections/read-models.ts';
import type { ProjectionRunner } from '#projections/runner.ts';
import { temporalCalendar } from '#src/adapters/calendar/temporal.ts';
import { describeAddress } from '#src/adapters/outbound/addresses.ts';
import type { Config } from '#src/config.ts';
import { isInside } from '#src/domain/destination/addresses.ts';
import { ATTENTION } from '#src/domain/monitoring/alert-rules.ts';
import type { ReceiptLog } from '#src/domain/receipt/payload.ts';
import { toJwk } from '#src/domain/signing-keys/keys.ts';
import { type App, createApp } from '#src/http/app.ts';
import type { HttpDeps, HttpSettings } from '#src/http/deps.ts';
import type { Payments } from '#src/ports/payments.ts';
import { checkPolicy } from '#src/usecases/decisions/check-policy.ts';
import { decideWebhook } from '#src/usecases/decisions/decide-webhook.ts';
import { targetQuota } from '#src/usecases/decisions/judge-request.ts';
import type { JournalDeps } from '#src/usecases/event-streams.ts';
import {
  claimTurns,
  guessLimit,
  type Slots,
  unconfirmedPayments,
} from '#src/usecases/execution/admission.ts';
import { executeGuidedWebhook } from '#src/usecases/execution/execute-guided-webhook.ts';
import { executeWebhook } from '#src/usecases/execution/execute-webhook.ts';
import { streamWatch } from '#src/usecases/execution/recover-jobs.ts';
import { handOffBrowser } from '#src/usecases/planning/hand-off-browser.ts';
import { previewSchedule } from '#src/usecases/planning/preview-schedule.ts';
import { undoneReceipts } from '#src/usecases/receipts/revoked-receipts.ts';
import type { Checkpoints } from '#src/usecases/transparency/checkpoints.ts';
import { transparency } from '#src/usecases/transparency/proofs.ts';
import { asOfNow } from './as-of-now.ts';
import { marketFacts } from './decision-facts.ts';
import { type Keys, verifierPrimitives } from './keys.ts';
import { offerOf, wirePayments } from './payments.ts';
import { wireQuota } from './quota.ts';
import { wireReads } from './reads.ts';
import type { Stores } from './stores.ts';
import { cidrs, type Targets, wireTargets } from './targets.ts';
import { stateLook, type Telemetry } from './telemetry.ts';
import { tracedPayments, tracedTargets } from './tracing.ts';

export type AppParts = JournalDeps &
  Keys & {
    readonly config: Config;
    readonly baseUrl: string;
    readonly owner: string;
    readonly stores: Stores;
    readonly models: ReadModels;
    readonly runner: ProjectionRunner;
    readonly ending: AbortSignal;
    readonly slots: Slots;
    readonly receiptLog: () => ReceiptLog | null;
    readonly checkpoints: Pick<Checkpoints, 'latest' | 'standing'>;
    readonly telemetry: Telemetry;
  };

export async function wireApp(parts: AppParts): Promise<App> {
  const { config, baseUrl, clock, ending, stores, models, runner, directory, slots, checkpoints } = parts;
  const { figures, tracer, logger: detail } = parts.telemetry;
  const targets = tracedTargets(await wireTargets(config, baseUrl, clock, ending), tracer);
  const quota = await wireQuota(parts);
  const { payments: untraced, protocol } = await wirePayments(parts);
  const payments = tracedPayments(untraced, tracer);
  const settings = settingsOf(parts, targets);
  const undone = undoneReceipts({ rows: models.receipt, keys: directory, clock });
  const now = asOfNow({ models, undone, clock });
  const execution = {
    ...parts,
    ...targets,
    quota,
    payments,
    exclusive: stores.exclusive,
    watch: streamWatch(clock),
    unconfirmed: unconfirmedPayments(),
    guesses: guessLimit(clock),
    turns: claimTurns(clock),
    targetQuotaPerMinute: config.rates.targetPerMinute,
  };
  // In demo mode it is known who will pay: the one payer that all callers are.
  const free = {
    ...execution,
    resolver: targets.freeResolver,
    payer: config.mode === 'demo' ? 'demo' : null,
    market: marketFacts({
      ...settings,
      models: { monitoring: models.monitoring, trust: now.trust },
      clock,
      checkpointStanding: checkpoints.standing,
    }),
    offer: { ...settings.offer, payTo: config.x402?.payTo ?? null },
    calendar: temporalCalendar(),
  };
  const look = stateLook({
    clock,
    eventLog: () => stores.log.health(),
    readModels: () => stores.readStore.health(),
    rest: () => ({ storage: stores.driver, executionsInFlight: slots.inFlight(), lag: runner.lag() }),
  });
  const verifying = { keys: directory, primitives: verifierPrimitives };
  const receiptTree = transparency({
    ...verifying,
    rows: models.transparency,
    latest: () => checkpoints.latest()?.note ?? null,
    stands: () => checkpoints.standing()?.consistent !== false,
  });
  const reading = { ...verifying, transparency: receiptTree };
  return createApp({
    ...parts,
    ...wireReads({ ...reading, models, now, log: stores.log, clock, reachedHead: runner.reachedHead }),
    execute: (input) => executeWebhook(execution, input),
    executeGuided: (input) => executeGuidedWebhook(execution, input),
    decide: (input) => decideWebhook(free, input),
    checkPolicy: ({ request }) => checkPolicy(free, request, free.payer),
    handOffBrowser: (request) => handOffBrowser(free, request),
    previewSchedule: (request) => previewSchedule(free, request),
    progress: runner,
    transparency: reading.transparency,
    checkpointStanding: checkpoints.standing,
    verifyScript: readFileSync(new URL('../verify/built/page.js', import.meta.url), 'utf8'),
    jwks: async () => ({ keys: (await directory.list()).map(toJwk) }),
    health: () => health(stores, runner, payments),
    operators: { figures, tracer, detail, exposition: async () => figures.exposition(await look()) },
    payments: protocol,
    quota,
    settings,
  });
}

async function health(
  { log, readStore }: Stores,
  runner: ProjectionRunner,
  payments: Payments,
): ReturnType<HttpDeps['health']> {
  const [eventLog, rows, facilitator] = await Promise.all([
    log.health(),
    readStore.health(),
    payments.health(),
  ]);
  const projections = { ok: runner.lag().lagMs <= ATTENTION.lagMs };
  return { eventLog, readModels: rows, projections, facilitator };
}

function settingsOf({ config, baseUrl, stores }: AppParts, targets: Targets): HttpSettings {
  const proxies = cidrs(config.trustedProxies);
  const { targetPerMinute, clientPerMinute, maxInFlight } = config.rates;
  return {
    baseUrl,
    mode: config.mode,
    storage: { driver: stores.driver, durable: true },
    offer: offerOf(config),
    policyMode: config.policy.mode,
    targetQuota: targetQuota({ rules: targets.rules, targetQuotaPerMinute: targetPerMinute }),
    rateLimitPerMinute: clientPerMinute,
    maxInFlight,
    facilitatorTimeoutMs: config.x402?.facilitatorTimeoutMs ?? null,
    retentionDays: config.retentionDays,
    trustsProxy(address) {
      const facts = describeAddress(address);
      return facts !== null && proxies.some((cidr) => isInside(facts.bytes, cidr));
    },
    egressExemption: config.egress.allowCidrs.length > 0,
    metricsPublic: config.metricsPublic,
  };
}
