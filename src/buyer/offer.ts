// The relay's 402 (x402 version 2, scheme exact), read and compared with the buyer's limits before anything is signed.

import { type Static, Type } from '@sinclair/typebox';
import type { PaymentRequired } from '@x402/core/types';
import { DEFAULT_ASSETS, type ExactDefaultAssetInfo } from '@x402/evm';
import { x402Client, x402HTTPClient } from '@x402/fetch';
import { matchesHost } from '#src/domain/destination/url.ts';
import { showUsd } from '#src/domain/payment/price.ts';
import { shapeCheck } from '#src/domain/shape-check.ts';

export type BuyerLimits = {
  /** Millionths of a US dollar, at most. */
  readonly maxPriceMicroUsd: bigint;
  /** CAIP-2. */
  readonly network: string;
  /** null: no payee was named, so no one is paid. */
  readonly payTo: string | null;
  /** Hosts that may be called, or `*.example.com` for every name under it; null: any. */
  readonly allowHosts: readonly string[] | null;
};

export type OfferFinding = {
  readonly name: 'target_host' | 'network' | 'resource' | 'asset' | 'price' | 'pay_to';
  readonly ok: boolean;
  readonly expected: string;
  readonly offered: string;
};

const text = Type.String({ minLength: 1 });

/** One requirement that this buyer can sign. */
export const OfferTerms = Type.Object({
  scheme: Type.Literal('exact'),
  network: Type.Unsafe<`${string}:${string}`>(Type.String({ pattern: '^eip155:[1-9]\\d{0,15}$' })),
  amount: text,
  asset: Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' }),
  payTo: Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' }),
  maxTimeoutSeconds: Type.Integer({ minimum: 1 }),
  extra: Type.Object({ name: text, version: text }),
});
export type OfferTerms = Static<typeof OfferTerms>;
const isTerms = shapeCheck(OfferTerms);
/** `assetTransferMethod`: eip3009 if it is missing. */
type Offered = OfferTerms & { readonly extra: { readonly assetTransferMethod?: unknown } };

const Required = Type.Object({
  x402Version: Type.Literal(2),
  resource: Type.Object({ url: text }),
  accepts: Type.Array(Type.Object({ scheme: Type.Unknown(), network: Type.Unknown() })),
});
/** A 402 whose entries in `accepts` are not judged yet. */
export type RelayOffer = Static<typeof Required>;
const isOffer = shapeCheck(Required);

/** The header PAYMENT-REQUIRED; null if it is missing or no 402 of version 2. */
export function readOffer(headers: Headers): RelayOffer | null {
  try {
    const http = new x402HTTPClient(new x402Client());
    const required: unknown = http.getPaymentRequiredResponse((name) => headers.get(name));
    return isOffer(required) ? required : null;
  } catch {
    return null;
  }
}

/** A 402 with the one requirement that is to be signed, in the form that x402 clients take. */
export type ToSign = PaymentRequired & { readonly accepts: [OfferTerms] };

/** `required`: what to sign, with the accepted requirement only; null if no requirement has the network and a readable form. */
export type JudgedOffer = {
  readonly required: ToSign | null;
  readonly findings: readonly OfferFinding[];
};

/**
 * Returns all findings, not only the first bad one. Of several requirements on the network, the first that is within the
 * limits is accepted. `resourceUrl`: the URL that is called. `targetHost`: as `Target.hostname`.
 */
export function judgeOffer(
  { accepts, resource }: RelayOffer,
  limits: BuyerLimits,
  { resourceUrl, targetHost }: { readonly resourceUrl: string; readonly targetHost: string },
): JudgedOffer {
  const usable = accepts
    .filter((one): one is Offered => isTerms(one))
    .filter(({ network }) => network === limits.network);
  const judged = usable.map((terms) => ({ terms, findings: judgeTerms(terms, limits) }));
  const best = judged.find(({ findings }) => findings.every(({ ok }) => ok)) ?? judged[0];
  const offers = accepts.map(({ scheme, network }) => `${scheme} on ${network}`).join(', ') || 'none';
  const findings = [
    ...judgeHost(targetHost, limits.allowHosts),
    finding('network', `exact on ${limits.network}`, offers, best !== undefined),
    finding('resource', resourceUrl, resource.url, resource.url === resourceUrl),
    ...(best?.findings ?? []),
  ];
  if (best === undefined) return { required: null, findings };
  return {
    required: { x402Version: 2, resource: { url: resource.url }, accepts: [signedMembers(best.terms)] },
    findings,
  };
}

/** Without what the relay sent besides: nothing else of its text is signed, stored or sent back. */
function signedMembers({ extra, ...terms }: Offered): OfferTerms {
  const { scheme, network, amount, asset, payTo, maxTimeoutSeconds } = terms;
  const { name, version } = extra;
  return { scheme, network, amount, asset, payTo, maxTimeoutSeconds, extra: { name, version } };
}

const judgeHost = (host: string, allowed: readonly string[] | null): readonly OfferFinding[] =>
  allowed === null
    ? []
    : [
        finding(
          'target_host',
          allowed.join(' or '),
          host,
          allowed.some((one) => matchesHost(host, one)),
        ),
      ];

function judgeTerms(terms: Offered, limits: BuyerLimits): readonly OfferFinding[] {
  const { asset, amount, payTo, network, extra } = terms;
  const usdc = usdcOf(network);
  const method = extra.assetTransferMethod ?? 'eip3009';
  const price = microUsdOf(terms);
  return [
    finding(
      'asset',
      `${usdc?.asset ?? 'a network with a known USDC contract'} by eip3009`,
      `${asset} by ${method}`,
      same(asset, usdc?.asset) && method === 'eip3009',
    ),
    finding(
      'price',
      `at most ${showUsd(limits.maxPriceMicroUsd)}`,
      price === null ? `${amount} units` : showUsd(price),
      price !== null && price <= limits.maxPriceMicroUsd,
    ),
    finding('pay_to', limits.payTo ?? 'none given', payTo, same(payTo, limits.payTo)),
  ];
}

const finding = (
  name: OfferFinding['name'],
  expected: string,
  offered: string,
  ok: boolean,
): OfferFinding => ({
  name,
  ok,
  expected,
  offered,
});

const same = (a: string, b: string | null | undefined): boolean => a.toLowerCase() === b?.toLowerCase();

/** The price in millionths of a US dollar, rounded up; null if it is no amount, or the network has no known USDC. */
export function microUsdOf({ amount, network }: Pick<OfferTerms, 'amount' | 'network'>): bigint | null {
  const usdc = usdcOf(network);
  if (usdc === undefined || !/^[1-9]\d{0,30}$/.test(amount)) return null;
  const unit = 10n ** BigInt(usdc.decimals);
  return (BigInt(amount) * 1_000_000n + unit - 1n) / unit;
}

function usdcOf(network: string): ExactDefaultAssetInfo | undefined {
  const known = (DEFAULT_ASSETS as Record<string, readonly ExactDefaultAssetInfo[]>)[network];
  return known?.find(({ symbol }) => symbol === 'USDC');
}
