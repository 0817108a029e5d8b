// What executes calls: the use cases of both paid routes, and how they are paid.
import { describeAddress } from '#src/adapters/outbound/addresses.ts';
import { demoPayments } from '#src/adapters/payments/demo.ts';
import { ConfigError } from '#src/config.ts';
import { PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import { toHex } from '#src/domain/encoding.ts';
import { didOf } from '#src/domain/signing-keys/keys.ts';
import type { AppDeps } from '#src/http/app.ts';
import type { PaymentProtocol } from '#src/ports/payment-protocol.ts';
import type { Payments } from '#src/ports/payments.ts';
import type { Resolver } from '#src/ports/resolver.ts';
import { executeGuidedWebhook } from '#src/usecases/execution/execute-guided-webhook.ts';
import { type ExecuteDeps, executeWebhook } from '#src/usecases/execution/execute-webhook.ts';
import { claimTurns, guessLimit, unconfirmedPayments } from '#src/usecases/execution/process-limits.ts';
import { UnchargedLimit } from '#src/usecases/execution/uncharged-limit.ts';
import { VerifyLimit } from '#src/usecases/execution/verify-limit.ts';
import { streamWatch } from '#src/usecases/process/watch.ts';
import type { ReconcilerDeps } from '#src/usecases/reconciliation/reconciler.ts';
import type { Transparency } from '#src/usecases/transparency/proofs.ts';
import type { AppParts, Shared } from './app-parts.ts';
import { TERM_VARIABLES } from './start-errors.ts';
import { tracedOutbound, tracedPayments, tracedResolver } from './telemetry.ts';

export function wireExecution(
  { config, baseUrl, owner, journal, stopping, keys, stores, slots, ...parts }: AppParts,
  { targets, quota, settings }: Shared,
  { payments, protocol }: Paying,
  transparency: Pick<Transparency, 'latest'>,
): {
  readonly routes: AppDeps['execute'];
  /** Its resolver is that of runs of schedules. */
  readonly execution: ExecuteDeps;
  readonly resolverOf: (client: string) => Resolver;
} {
  const { log, clock, entropy, logger, ending } = journal;
  const { signer, agentSigner, keyedHash } = keys;
  const { tracer } = parts.telemetry;
  const resolverOf = (client: string) => tracedResolver(targets.resolverOf(client), tracer);
  const execution = {
    log,
    clock,
    entropy,
    logger,
    ending,
    owner,
    baseUrl,
    signer,
    agentSigner: config.webBotAuth ? agentSigner : null,
    keyedHash,
    receiptLog: parts.receiptLog,
    rules: targets.rules,
    describeAddress,
    pseudonym: targets.pseudonym,
    resolver: resolverOf('runs of schedules'),
    outbound: tracedOutbound(targets.outbound, tracer),
    payments,
    quota,
    targetQuotaPerMinute: config.rates.targetPerMinute,
    slots,
    exclusive: stores.exclusive,
    watch: streamWatch(clock),
    foundRunning: parts.recovery.foundRunning,
    recordIsWhole: parts.recordIsWhole,
    unconfirmed: unconfirmedPayments(),
    uncharged: new UnchargedLimit({ log, clock, quota }),
    guesses: guessLimit(clock),
    confirmWaitMs: config.x402?.confirmWaitMs ?? 0,
    stopping,
    takeTurn: claimTurns(clock),
    verifies: new VerifyLimit(clock, parts.places),
  };
  const asClient = ({ client }: { readonly client: string }) => ({
    ...execution,
    resolver: resolverOf(client),
  });
  const routes: AppDeps['execute'] = {
    clock,
    logger,
    quota,
    settings,
    transparency,
    payments: protocol,
    clientKey: (address) => toHex(keyedHash.mac('client', address)),
    execute: (input) => executeWebhook(asClient(input), input),
    executeGuided: (input) => executeGuidedWebhook(asClient(input), input),
  };
  return { routes, execution, resolverOf };
}

export type Paying = {
  /** Traced. */
  readonly payments: Payments;
  /** null: calls are free. */
  readonly protocol: PaymentProtocol | null;
  /** What the books are compared with; null: nothing is charged. */
  readonly chain: Pick<ReconcilerDeps, 'scan' | 'payee' | 'intervalMs'> | null;
};

/**
 * None in demo mode, otherwise x402, whose packages are loaded only then. Throws `ConfigError` if the values do not describe
 * a payment.
 */
export async function wirePayments({
  config: { x402 },
  baseUrl,
  journal: { clock, logger },
  keys: { signer },
  stopping,
  telemetry: { tracer },
}: AppParts): Promise<Paying> {
  if (x402 === null) return { payments: tracedPayments(demoPayments(), tracer), protocol: null, chain: null };
  const [{ x402Payments }, { UnusableTerms }, { termsWarnings }] = await Promise.all([
    import('#src/adapters/payments/x402.ts'),
    import('#src/adapters/payments/requirements.ts'),
    import('#src/adapters/payments/terms-warnings.ts'),
  ]);
  const base = new URL(baseUrl);
  const offerKey = { signer, did: didOf(base.hostname, base.port) };
  const options = { baseUrl, clock, logger, x402, offerKey, stopping, routes: PAID_ROUTES };
  const wired = await x402Payments(options).catch((error: unknown): never => {
    if (!(error instanceof UnusableTerms)) throw error;
    throw new ConfigError([{ variable: TERM_VARIABLES[error.setting], problem: error.message }]);
  });
  const { payments, protocol, scan, payee } = wired;
  for (const text of termsWarnings(x402)) logger.warn(text);
  void wired
    .describe()
    .then((facts) => logger.info('calls are paid', facts))
    .catch((cause: unknown) => logger.bug('the terms of payment cannot be described', { cause }));
  // Logs problems of facilitator and clock at the start; nothing waits for it.
  void payments.health();
  return {
    payments: tracedPayments(payments, tracer),
    protocol,
    chain: { scan, payee, intervalMs: x402.reconcileMs },
  };
}
