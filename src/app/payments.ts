// Payments: none in demo mode, otherwise x402 with the configured facilitator. Its packages are loaded only then.
import { parseUrl } from '#src/adapters/outbound/addresses.ts';
import { demoPayments } from '#src/adapters/payments/demo.ts';
import { type Config, ConfigError } from '#src/config.ts';
import { PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import { PRICE } from '#src/domain/limits.ts';
import { didOf } from '#src/domain/signing-keys/keys.ts';
import type { HttpSettings } from '#src/http/deps.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { PaymentProtocol } from '#src/ports/payment-protocol.ts';
import type { Payments } from '#src/ports/payments.ts';
import type { Signer } from '#src/ports/signer.ts';

export type PaymentParts = {
  readonly config: Config;
  readonly baseUrl: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signer: Signer;
};

/** `protocol` null: calls are free. Throws `ConfigError` if the values do not describe a payment. */
export async function wirePayments(
  parts: PaymentParts,
): Promise<{ readonly payments: Payments; readonly protocol: PaymentProtocol | null }> {
  const { config, baseUrl, signer } = parts;
  const { x402 } = config;
  if (x402 === null) return { payments: demoPayments(), protocol: null };
  const [{ x402Payments }, { UnusableTerms }] = await Promise.all([
    import('#src/adapters/payments/x402.ts'),
    import('#src/adapters/payments/requirements.ts'),
  ]);
  const base = parseUrl(baseUrl);
  if (base === null) throw new Error('the configuration has validated the base URL');
  const offerKey = { signer, did: didOf(base.hostname, base.port) };
  const options = { ...parts, x402, offerKey, routes: PAID_ROUTES };
  const paid = await x402Payments(options).catch((error: unknown): never => {
    if (!(error instanceof UnusableTerms)) throw error;
    throw new ConfigError([{ variable: VARIABLES[error.setting], problem: error.message }]);
  });
  // Logs problems of facilitator, chain and clock at start; nothing waits for it.
  void paid.payments.health();
  return paid;
}

const VARIABLES = { network: 'X402_NETWORK', asset: 'X402_ASSET', priceUsd: 'X402_PRICE' } as const;

/** What a call costs; in demo mode what a paid call would cost. */
export function offerOf({ x402 }: Config): HttpSettings['offer'] {
  if (x402 === null) return { scheme: PRICE.scheme, network: PRICE.network, price: PRICE.display };
  return { scheme: PRICE.scheme, network: x402.network, price: `$${x402.priceUsd}` };
}
