// The price of a paid call and how it can be paid, in both protocol versions. Built from the configuration and the facts of
// the asset, so that the service answers 402 while facilitator and chain are unavailable.
import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { convertToTokenAmount } from '@x402/core/utils';
import { DEFAULT_ASSETS, type DefaultAssetInfo, findDefaultAsset } from '@x402/evm';
import { domainSeparator } from 'viem';
import {
  ChainIdToNetwork,
  PaymentRequirementsSchema,
  type PaymentRequirements as PaymentRequirementsV1,
} from 'x402/types';
import type { JsonObject } from '#src/domain/canonical-json.ts';
import type { Route } from '#src/domain/event-fields.ts';
import { SERVICE } from '#src/domain/limits.ts';
import type { AskedFor } from '#src/domain/payment/price.ts';
import type { TicketOffer } from '#src/ports/payment-protocol.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import { copyJson, describeRoute, type PaidRoute } from './discovery.ts';
import type { FacilitatorLogin } from './login.ts';

export type X402Settings = {
  readonly payTo: string;
  readonly facilitatorUrl: string;
  /** CAIP-2, `eip155:…`. */
  readonly network: string;
  /** US dollars, decimal, without a sign. */
  readonly priceUsd: string;
  /** Contract address; null: the network's USDC. */
  readonly asset: string | null;
  /** A node of the network. */
  readonly rpcUrl: string;
  readonly facilitatorTimeoutMs: number;
  /** At the facilitator; null: none. */
  readonly login: FacilitatorLogin | null;
};

export type Hex = `0x${string}`;

export type Terms = {
  readonly network: `${string}:${string}`;
  readonly chainId: number;
  /** The network's name in version 1; null if it has none: then version 1 clients cannot pay. */
  readonly networkV1: string | null;
  /** Lower case, since it is compared. */
  readonly asset: Hex;
  readonly payTo: Hex;
  /** Atomic units, decimal. */
  readonly amount: string;
  readonly domain: SigningDomain;
  readonly domainSeparator: Hex;
  /** Version 2, with the addresses as configured. */
  readonly requirements: PaymentRequirements;
};

/** Of an asset, EIP-712. */
export type SigningDomain = { readonly name: string; readonly version: string };

/** What its contract states. */
export type AssetFacts = { readonly decimals: number; readonly domain: SigningDomain };

export type Asset = {
  readonly chainId: number;
  /** Lower case. */
  readonly address: Hex;
  /** The address as configured. */
  readonly spelling: string;
  /** As the package knows it, for a start while the node does not answer; null: it does not know this asset. */
  readonly known: AssetFacts | null;
};

/** The settings describe no payment. `message`: what is wrong with the setting, as a predicate. */
export class UnusableTerms extends Error {
  readonly setting: 'network' | 'asset' | 'priceUsd' | 'rpcUrl';
  constructor(setting: UnusableTerms['setting'], message: string) {
    super(message);
    this.name = 'UnusableTerms';
    this.setting = setting;
  }
}

/** How long an authorization lives that pays a call. */
export const MAX_TIMEOUT_SECONDS = 120;
/**
 * Settled before the call, since the call's effect cannot be undone. Every entry of a 402 says so, in both versions: stock
 * clients prefer an entry without `paymentFlow`.
 */
const PAYMENT_FLOW = { paymentFlow: 'upfront' } as const;
const MIME_TYPE = 'application/json';

export const lowerHex = (text: string): Hex => text.toLowerCase() as Hex;

/** Throws `UnusableTerms` if the network has no default asset and none is configured, or it takes no EIP-3009 authorizations. */
export function assetOf(settings: X402Settings): Asset {
  const { network } = settings;
  const known = knownAsset(settings, network as Terms['network']);
  const spelling = settings.asset ?? known?.asset ?? '';
  return {
    chainId: Number(network.slice(network.indexOf(':') + 1)),
    address: lowerHex(spelling),
    spelling,
    known: known && { decimals: known.decimals, domain: { name: known.name, version: known.version } },
  };
}

/** Throws `UnusableTerms` if the price is not an amount of the asset. */
export function paymentTerms(settings: X402Settings, asset: Asset, { decimals, domain }: AssetFacts): Terms {
  const network = settings.network as Terms['network'];
  const amount = atomicUnits(settings.priceUsd, decimals);
  const { chainId, address, spelling } = asset;
  return {
    network,
    chainId,
    networkV1: networkNameV1(network),
    asset: address,
    payTo: lowerHex(settings.payTo),
    amount,
    domain,
    domainSeparator: domainSeparator({ domain: { ...domain, chainId, verifyingContract: address } }),
    requirements: {
      scheme: 'exact',
      network,
      amount,
      asset: spelling,
      payTo: settings.payTo,
      maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
      extra: { ...domain, ...PAYMENT_FLOW },
    },
  };
}

/** Our requirements with the payment's signed amount and payee: a known payment may have accepted earlier terms. */
export function requirementsOf(
  { requirements, payTo }: Terms,
  payment: Pick<PresentedPayment, 'amount' | 'payTo'>,
): PaymentRequirements {
  const spelling = payment.payTo === payTo ? requirements.payTo : payment.payTo;
  return { ...requirements, amount: payment.amount, payTo: spelling };
}

/** The version 1 name of a CAIP-2 network; null if version 1 does not know it. */
export function networkNameV1(network: string): string | null {
  const chainId = /^eip155:(\d+)$/.exec(network)?.[1];
  return (chainId === undefined ? undefined : ChainIdToNetwork[Number(chainId)]) ?? null;
}

/** null: the configured asset is unknown to the package. */
function knownAsset({ asset }: X402Settings, network: Terms['network']): DefaultAssetInfo | null {
  const known = asset === null ? defaultAssetOf(network) : (findDefaultAsset(asset, network) ?? null);
  const setting = asset === null ? 'network' : 'asset';
  if (asset === null && known === null)
    throw new UnusableTerms(setting, 'has no USDC known to this service: set X402_ASSET');
  if (known !== null && 'assetTransferMethod' in known)
    throw new UnusableTerms(
      setting,
      `selects ${known.symbol}, which does not support EIP-3009 authorizations`,
    );
  return known;
}

/** All that the package knows are US dollars. null: it does not know this one. */
export const knownAssetOf = (
  network: string,
  asset: string,
): Pick<DefaultAssetInfo, 'decimals' | 'symbol'> | null =>
  findDefaultAsset(asset, network as Terms['network']) ?? null;

/** The network's USDC; null: it has none known to the package. */
export function defaultAssetOf(network: string): DefaultAssetInfo | null {
  const [first] = (DEFAULT_ASSETS as Record<string, readonly DefaultAssetInfo[]>)[network] ?? [];
  return first ?? null;
}

/** The package's conversion drops fractions of a unit. */
function atomicUnits(priceUsd: string, decimals: number): string {
  const places = /\.(\d*?)0*$/.exec(priceUsd)?.[1] ?? '';
  const amount = convertToTokenAmount(priceUsd, decimals);
  if (places.length > decimals || amount === '0') {
    throw new UnusableTerms(
      'priceUsd',
      `is not a whole number of units of an asset with ${decimals} decimals`,
    );
  }
  return amount;
}

export type PaidRoutes = Readonly<Record<Route, PaidRoute>>;

const TAGS = ['webhook', 'relay', 'https', 'signed-receipt', 'agents'];
/** Limit of the extension bazaar. */
const DESCRIPTION_MAX = 450;

type RoutePricing = {
  /** Version 2, without `error` and the signed offer, which differ between answers. */
  readonly required: PaymentRequired;
  /** The same as a header can contain it: what only catalogues read is in `required`, the documents and the body of a 402. */
  readonly inHeader: PaymentRequired & { readonly extensions: Readonly<Record<string, unknown>> };
  /** Empty if version 1 has no name for the network. */
  readonly acceptsV1: readonly PaymentRequirementsV1[];
  /** What catalogues may publish: `{bazaar: …}`. */
  readonly discovery: Readonly<Record<string, unknown>>;
};

export type Pricing = {
  readonly terms: Terms;
  readonly routes: Readonly<Record<Route, RoutePricing>>;
  /** A run of a schedule: verified now and settled when it is due, so that its entries have no `paymentFlow`. */
  ticketOf(ticket: TicketOffer): RoutePricing;
  /** The route that the payer names; `execute/webhook` if it names none of ours. */
  routeOf(resourceUrl: string | null): RoutePricing;
};

export function pricingOf(terms: Terms, baseUrl: string, paid: PaidRoutes): Pricing {
  const plainUrl = baseUrl.replace(/\/$/, '');
  const routePricing = (route: PaidRoute, priced: Terms = terms): RoutePricing => {
    const { description, path, icon } = route;
    if (description.length > DESCRIPTION_MAX) throw new RangeError('the description of a route is too long');
    const resource = {
      url: `${plainUrl}${path}`,
      description,
      mimeType: MIME_TYPE,
      serviceName: SERVICE.name,
      tags: TAGS,
      iconUrl: `${plainUrl}${icon}`,
    };
    const { discovery, discoveryInHeader, outputSchemaV1 } = describeRoute(route);
    const { url, serviceName } = resource;
    const accepts = [priced.requirements];
    return {
      required: { x402Version: 2, resource, accepts },
      inHeader: {
        x402Version: 2,
        resource: { url, description, serviceName },
        accepts,
        extensions: discoveryInHeader,
      },
      acceptsV1: acceptsV1(priced, resource, outputSchemaV1),
      discovery,
    };
  };
  const routes = perRoute(paid, (route) => routePricing(route));
  return {
    terms,
    routes,
    ticketOf({ maxTimeoutSeconds, run, ...route }) {
      const requirements = { ...terms.requirements, maxTimeoutSeconds, extra: { ...terms.domain } };
      const priced = routePricing(
        { ...route, icon: paid['execute/webhook'].icon },
        { ...terms, requirements },
      );
      if (run === null) return priced;
      const extensions = { ...priced.inHeader.extensions, ...scheduledRun(run) };
      return { ...priced, inHeader: { ...priced.inHeader, extensions } };
    },
    routeOf: (resourceUrl) =>
      Object.values(routes).find(({ required }) => required.resource.url === resourceUrl) ??
      routes['execute/webhook'],
  };
}

/** An extension of this service: which run is paid for, for a buyer that compares it with its own schedule. */
const scheduledRun = (run: NonNullable<TicketOffer['run']>) => ({
  'scheduled-run': { info: run, schema: { type: 'object' } },
});

/** A pricing as plain JSON, for documents. */
export const askedFor = ({ required, discovery }: RoutePricing): AskedFor =>
  copyJson({ resource: required.resource.url, accepts: required.accepts, extensions: discovery });

export const perRoute = <A, B>(routes: Readonly<Record<Route, A>>, map: (value: A) => B) => ({
  'execute/webhook': map(routes['execute/webhook']),
  'execute/guided-webhook': map(routes['execute/guided-webhook']),
});

/** Validated with the package's schema, which its clients use too. */
function acceptsV1(
  { networkV1, requirements }: Terms,
  resource: { readonly url: string; readonly description: string },
  outputSchema: JsonObject,
): readonly PaymentRequirementsV1[] {
  if (networkV1 === null) return [];
  const { scheme, asset, payTo, amount, maxTimeoutSeconds, extra } = requirements;
  return [
    PaymentRequirementsSchema.parse({
      scheme,
      network: networkV1,
      maxAmountRequired: amount,
      resource: resource.url,
      description: resource.description,
      mimeType: MIME_TYPE,
      outputSchema,
      payTo,
      maxTimeoutSeconds,
      asset,
      extra,
    }),
  ];
}
