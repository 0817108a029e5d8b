// What is asked for: one price on one network for both paid routes, in the words of both protocol versions.
// It is made of the configuration alone, so that the service answers 402 while facilitator and chain are away.

import type { PaymentRequirements, ResourceInfo } from '@x402/core/types';
import { convertToTokenAmount } from '@x402/core/utils';
import { DEFAULT_ASSETS, type DefaultAssetInfo, findDefaultAsset } from '@x402/evm';
import {
  ChainIdToNetwork,
  PaymentRequirementsSchema,
  type PaymentRequirements as PaymentRequirementsV1,
} from 'x402/types';
import type { Json } from '#src/domain/canonical-json.ts';
import type { Route } from '#src/domain/event-fields.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';

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
  /** false: what it is called and how many decimals it has is taken for granted. */
  readonly assetIsKnown: boolean;
};

/** Nothing can be asked by these settings. `message`: what is wrong with the one named, as a predicate. */
export class UnusableTerms extends Error {
  readonly setting: 'network' | 'asset' | 'priceUsd';
  constructor(setting: UnusableTerms['setting'], message: string) {
    super(message);
    this.name = 'UnusableTerms';
    this.setting = setting;
  }
}

export const MAX_TIMEOUT_SECONDS = 120;
export const MIME_TYPE = 'application/json';
const TAGS = ['webhook', 'relay', 'https', 'signed-receipt', 'agents'];
/** The catalogue's limit (extension bazaar). */
const DESCRIPTION_MAX = 450;
/** Of an asset that the package does not know: what Circle's contracts say of themselves. */
const USDC = { name: 'USD Coin', version: '2', decimals: 6 };

/** Throws `UnusableTerms` where the network has no asset of its own and none is configured, or the price is no amount. */
export function paymentTerms(settings: X402Settings): Terms {
  const network = settings.network as Caip2;
  const known = knownAsset(settings, network);
  // other coins of a network's issuer are mostly called as its own
  const { name, version } = known ?? defaultAssetOf(network) ?? USDC;
  const asset = settings.asset ?? known?.asset ?? '';
  const amount = atomicUnits(settings.priceUsd, (known ?? USDC).decimals);
  const domain = { name, version };
  return {
    network,
    chainId: Number(network.slice(network.indexOf(':') + 1)),
    networkV1: networkNameV1(network),
    asset: lowerHex(asset),
    payTo: lowerHex(settings.payTo),
    amount,
    domain,
    requirements: {
      scheme: 'exact',
      network,
      amount,
      asset,
      payTo: settings.payTo,
      maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
      // upfront: settled before the call, since the call's effect cannot be undone
      extra: { ...domain, paymentFlow: 'upfront' },
    },
    assetIsKnown: known !== null,
  };
}

/** Ours, but for what the payment itself has signed: equal to ours where it is new, to what was asked where it is known. */
export function requirementsOf(
  { requirements, payTo }: Terms,
  payment: Pick<PresentedPayment, 'amount' | 'payTo'>,
): PaymentRequirements {
  const spelling = payment.payTo === payTo ? requirements.payTo : payment.payTo;
  return { ...requirements, amount: payment.amount, payTo: spelling };
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

/** null: configured, and not known to the package. */
function knownAsset({ asset }: X402Settings, network: Caip2): DefaultAssetInfo | null {
  const known = asset === null ? defaultAssetOf(network) : (findDefaultAsset(asset, network) ?? null);
  if (asset === null && known === null) {
    throw new UnusableTerms('network', 'has no USDC that this service knows: set X402_ASSET');
  }
  if (known !== null && 'assetTransferMethod' in known) {
    const setting = asset === null ? 'network' : 'asset';
    throw new UnusableTerms(setting, `leads to ${known.symbol}, which takes no EIP-3009 authorizations`);
  }
  return known;
}

function defaultAssetOf(network: string): DefaultAssetInfo | null {
  const [first] = (DEFAULT_ASSETS as Record<string, readonly DefaultAssetInfo[]>)[network] ?? [];
  return first ?? null;
}

/** The package's own conversion drops what is smaller than a unit. */
function atomicUnits(priceUsd: string, decimals: number): string {
  const places = /\.(\d*?)0*$/.exec(priceUsd)?.[1] ?? '';
  const amount = convertToTokenAmount(priceUsd, decimals);
  if (places.length > decimals || amount === '0') {
    throw new UnusableTerms('priceUsd', `is no whole number of units of an asset with ${decimals} decimals`);
  }
  return amount;
}
