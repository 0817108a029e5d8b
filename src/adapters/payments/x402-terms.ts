// What is asked for: one price on one network for both paid routes, in the words of both protocol versions.
// It is made of the configuration alone, so that the service answers 402 while facilitator and chain are away.

import type { PaymentRequirements, ResourceInfo } from '@x402/core/types';
import { convertToTokenAmount } from '@x402/core/utils';
import { DEFAULT_ASSETS, type DefaultAssetInfo, findDefaultAsset } from '@x402/evm';
import { ExactEvmScheme } from '@x402/evm/exact/server';
import {
  ChainIdToNetwork,
  PaymentRequirementsSchema,
  type PaymentRequirements as PaymentRequirementsV1,
} from 'x402/types';
import type { Json } from '../../domain/canonical-json.ts';
import type { Route } from '../../domain/event-fields.ts';

export type X402Settings = {
  readonly payTo: string;
  readonly facilitatorUrl: string;
  /** CAIP-2, `eip155:…`. */
  readonly network: string;
  /** US dollars, decimal, without a sign. */
  readonly priceUsd: string;
  /** Contract address; null: the network's USDC. */
  readonly asset: string | null;
  readonly rpcUrl: string | null;
  readonly facilitatorTimeoutMs: number;
};

/** What the challenge tells of a paid route. */
export type PaidRoute = {
  /** Begins with a slash. */
  readonly path: string;
  /** At most 450 characters. */
  readonly description: string;
  /** JSON Schema of the body, without references. */
  readonly inputSchema: { readonly [name: string]: unknown };
  readonly inputExample: { readonly [name: string]: unknown };
  readonly outputExample: { readonly [name: string]: unknown };
};

export type PaidRoutes = Readonly<Record<Route, PaidRoute>>;

/** The package’s form of CAIP-2. */
export type Caip2 = `${string}:${string}`;

export type Terms = {
  readonly network: Caip2;
  readonly chainId: number;
  /** The network's name in version 1; null where it has none, and version 1 cannot pay. */
  readonly networkV1: string | null;
  /** Lower case, as everything that is compared. */
  readonly asset: `0x${string}`;
  readonly payTo: `0x${string}`;
  /** Atomic units, decimal. */
  readonly amount: string;
  /** EIP-712 domain of the asset. */
  readonly domain: { readonly name: string; readonly version: string };
  /** Version 2, with the addresses as configured. */
  readonly requirements: PaymentRequirements;
};

export const MAX_TIMEOUT_SECONDS = 120;
export const MIME_TYPE = 'application/json';
const TAGS = ['webhook', 'relay', 'https', 'signed-receipt', 'agents'];
/** The catalogue's limit (extension bazaar). */
const DESCRIPTION_MAX = 450;
/** Of an asset that the package does not know: what Circle's contracts say of themselves. */
const USDC_DOMAIN = { name: 'USD Coin', version: '2' };
const USDC_DECIMALS = 6;

/** Throws where the network has no asset of its own and none is configured. */
export async function paymentTerms(settings: X402Settings): Promise<Terms> {
  const network = settings.network as Caip2;
  const priced = await priceOf(settings, network);
  const domain = domainOf(priced.asset, network, priced.extra);
  const chainId = Number(network.slice(network.indexOf(':') + 1));
  return {
    network,
    chainId,
    networkV1: networkNameV1(network),
    asset: lowerHex(priced.asset),
    payTo: lowerHex(settings.payTo),
    amount: priced.amount,
    domain,
    requirements: {
      scheme: 'exact',
      network,
      amount: priced.amount,
      asset: priced.asset,
      payTo: settings.payTo,
      maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
      // upfront: settled before the call, since the call's effect cannot be undone
      extra: { ...domain, paymentFlow: 'upfront' },
    },
  };
}

export const lowerHex = (text: string): `0x${string}` => text.toLowerCase() as `0x${string}`;

/** The version 1 name of a CAIP-2 network; null where version 1 does not know it. */
export function networkNameV1(network: string): string | null {
  const chainId = /^eip155:(\d+)$/.exec(network)?.[1];
  return (chainId === undefined ? undefined : ChainIdToNetwork[Number(chainId)]) ?? null;
}

export function resourceOf(baseUrl: string, route: PaidRoute, serviceName: string): ResourceInfo {
  if (route.description.length > DESCRIPTION_MAX) throw new RangeError('a route is described too long');
  const url = `${baseUrl.replace(/\/$/, '')}${route.path}`;
  return { url, description: route.description, mimeType: MIME_TYPE, serviceName, tags: TAGS };
}

/** As the package's own clients will read it; none where version 1 has no name for the network. */
export function acceptsV1(
  terms: Terms,
  resource: ResourceInfo,
  outputSchema: { readonly [name: string]: Json },
): readonly PaymentRequirementsV1[] {
  if (terms.networkV1 === null) return [];
  const { scheme, asset, payTo, amount } = terms.requirements;
  return [
    PaymentRequirementsSchema.parse({
      scheme,
      network: terms.networkV1,
      maxAmountRequired: amount,
      resource: resource.url,
      description: resource.description ?? '',
      mimeType: MIME_TYPE,
      outputSchema,
      payTo,
      maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
      asset,
      extra: { ...terms.domain },
    }),
  ];
}

type Priced = { readonly asset: string; readonly amount: string; readonly extra: Record<string, unknown> };

async function priceOf(settings: X402Settings, network: Caip2): Promise<Priced> {
  const { asset, priceUsd } = settings;
  if (asset !== null) {
    const decimals = findDefaultAsset(asset, network)?.decimals ?? USDC_DECIMALS;
    return { asset, amount: atomicUnits(priceUsd, decimals), extra: {} };
  }
  const { amount, asset: known, extra } = await new ExactEvmScheme().parsePrice(`$${priceUsd}`, network);
  return { asset: known, amount, extra: extra ?? {} };
}

/** The asset's own where the package knows it, else the network's, else Circle's usual words. */
function domainOf(asset: string, network: Caip2, extra: Record<string, unknown>): Terms['domain'] {
  const { name, version } = extra;
  if (typeof name === 'string' && typeof version === 'string') return { name, version };
  const known = findDefaultAsset(asset, network) ?? defaultAssetOf(network);
  return known === null ? USDC_DOMAIN : { name: known.name, version: known.version };
}

function defaultAssetOf(network: string): { readonly name: string; readonly version: string } | null {
  const [first] = (DEFAULT_ASSETS as Record<string, readonly DefaultAssetInfo[]>)[network] ?? [];
  return first ?? null;
}

function atomicUnits(priceUsd: string, decimals: number): string {
  const amount = convertToTokenAmount(priceUsd, decimals);
  if (!/^[1-9]\d*$/.test(amount)) throw new RangeError('the price has no whole number of atomic units');
  return amount;
}
