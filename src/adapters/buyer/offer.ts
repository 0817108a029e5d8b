// A buyer reads what a relay asks for before it pays (x402 version 2, scheme exact): is it what its own policy allows,
// and did that very relay sign it? Decides nothing of the payment itself (client.ts).
import { x402Client, x402HTTPClient } from '@x402/core/client';
import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { DEFAULT_ASSETS, type ExactDefaultAssetInfo } from '@x402/evm';
import { decodeSignedOffers, extractOffersFromPaymentRequired } from '@x402/extensions/offer-receipt';
import { type SignedBy, verifiedOffer } from './signed.ts';

export type ReadHeader = (name: string) => string | null;

/** What a 402 asks for. `carried`: the client's own, whole as it came. */
export type Bill = { readonly resourceUrl: string; readonly carried: PaymentRequired };

export type BuyerLimits = {
  /** Millionths of a US dollar, at most. */
  readonly maxPriceMicroUsd: bigint;
  /** CAIP-2. */
  readonly network: string;
  /** null: nobody has said yet whom to pay, so nobody is paid. */
  readonly payTo: string | null;
  /** The URL that is called. */
  readonly resourceUrl: string;
};

/** The one way to pay that is judged, and taken where all is well. */
export type Terms = Omit<PaymentRequirements, 'extra'>;

export type Finding = {
  readonly name: 'scheme' | 'network' | 'asset' | 'price' | 'pay_to' | 'resource' | 'window' | 'signed_offer';
  readonly ok: boolean;
  readonly expected: string;
  readonly offered: string;
};

/** `accepted`: null where the bill holds nothing on this network that could be judged. */
export type Judged = {
  readonly accepted: PaymentRequirements | null;
  readonly findings: readonly Finding[];
};

/** An authorization that stands longer than this is for nothing that a webhook needs. */
const WINDOW_MAX_SECONDS = 300;

/** null: the answer carries no bill of version 2. */
export function readBill(header: ReadHeader): Bill | null {
  try {
    const carried = new x402HTTPClient(new x402Client()).getPaymentRequiredResponse(header);
    const { x402Version, resource, accepts } = carried;
    if (x402Version !== 2 || typeof resource?.url !== 'string' || !Array.isArray(accepts)) return null;
    return { resourceUrl: resource.url, carried };
  } catch {
    return null;
  }
}

/** `nowMs`: Unix ms. Every finding is told, not the first bad one alone. */
export async function judgeBill(
  bill: Bill,
  limits: BuyerLimits,
  signedBy: SignedBy,
  nowMs: number,
): Promise<Judged> {
  const { accepts } = bill.carried;
  const onNetwork = accepts.filter(({ network }) => network === limits.network);
  const accepted = onNetwork.find(({ scheme }) => scheme === 'exact') ?? null;
  const offers = (of: readonly PaymentRequirements[], name: 'scheme' | 'network') =>
    [...new Set(of.map((each) => String(each[name])))].join(', ') || 'none';
  const findings: Finding[] = [
    finding('network', limits.network, offers(accepts, 'network'), onNetwork.length > 0),
    finding('scheme', 'exact', offers(onNetwork, 'scheme'), accepted !== null),
    finding('resource', limits.resourceUrl, bill.resourceUrl, bill.resourceUrl === limits.resourceUrl),
  ];
  if (accepted !== null) {
    findings.push(...termFindings(accepted, limits), await offerFinding(bill, accepted, signedBy, nowMs));
  }
  return { accepted, findings };
}

const finding = (name: Finding['name'], expected: string, offered: unknown, ok: boolean): Finding => ({
  name,
  ok,
  expected,
  offered: String(offered),
});

function termFindings(accepted: PaymentRequirements, limits: BuyerLimits): Finding[] {
  const { asset, amount, payTo, maxTimeoutSeconds, extra } = accepted;
  const usdc = usdcOf(limits.network);
  const { name, version, assetTransferMethod = 'eip3009' } = extra ?? {};
  const sameAsset = usdc !== null && same(asset, usdc.asset);
  // Anything but EIP-3009 under the token's own name would be another kind of signature than the one thought of.
  const sameDomain = name === usdc?.name && version === usdc?.version && assetTransferMethod === 'eip3009';
  const cap = usdc === null ? 0n : atomicUnits(limits.maxPriceMicroUsd, usdc.decimals);
  const priced = /^[1-9]\d{0,30}$/.test(amount) && BigInt(amount) <= cap;
  const shownAsset = `${asset} (${String(name)} ${String(version)}, ${String(assetTransferMethod)})`;
  const expectedAsset =
    usdc === null
      ? 'a network with a USDC that is known'
      : `${usdc.asset} (${usdc.name} ${usdc.version}, eip3009)`;
  const brief =
    Number.isInteger(maxTimeoutSeconds) && maxTimeoutSeconds > 0 && maxTimeoutSeconds <= WINDOW_MAX_SECONDS;
  return [
    finding('asset', expectedAsset, shownAsset, sameAsset && sameDomain),
    finding('price', `at most ${cap}`, amount, priced),
    finding(
      'pay_to',
      limits.payTo ?? 'nobody yet',
      payTo,
      limits.payTo !== null && same(payTo, limits.payTo),
    ),
    finding('window', `at most ${WINDOW_MAX_SECONDS} s`, `${maxTimeoutSeconds} s`, brief),
  ];
}

const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

function usdcOf(network: string): ExactDefaultAssetInfo | null {
  const known = (DEFAULT_ASSETS as Record<string, readonly ExactDefaultAssetInfo[]>)[network] ?? [];
  return known.find(({ symbol }) => symbol === 'USDC') ?? null;
}

const atomicUnits = (microUsd: bigint, decimals: number): bigint =>
  decimals >= 6 ? microUsd * 10n ** BigInt(decimals - 6) : microUsd / 10n ** BigInt(6 - decimals);

async function offerFinding(
  { carried, resourceUrl }: Bill,
  accepted: PaymentRequirements,
  signedBy: SignedBy,
  nowMs: number,
): Promise<Finding> {
  const expected = `these terms, signed by ${signedBy.did}`;
  const told = (offered: string, ok = false) => finding('signed_offer', expected, offered, ok);
  const signed = offersOf(carried);
  if (signed.length === 0) return told('no signed offer');
  const problems: string[] = [];
  for (const each of signed) {
    const verified = await verifiedOffer(each, signedBy, nowMs);
    if ('problem' in verified) {
      problems.push(verified.problem);
      continue;
    }
    const { scheme, network, asset, payTo, amount, validUntil, resourceUrl: of } = verified.payload;
    const terms = { scheme, network, asset, payTo, amount, of };
    const asked = { ...pick(accepted), of: resourceUrl };
    if (JSON.stringify(terms) !== JSON.stringify(asked)) problems.push('signed for other terms');
    else if (!(validUntil * 1000 > nowMs)) problems.push('it is over');
    else return told(`signed by ${verified.keyUrl}`, true);
  }
  return told(problems.join('; '));
}

const pick = ({ scheme, network, asset, payTo, amount }: PaymentRequirements) => ({
  scheme,
  network,
  asset,
  payTo,
  amount,
});

function offersOf(carried: PaymentRequired) {
  try {
    return decodeSignedOffers(extractOffersFromPaymentRequired(carried)).map(
      ({ signedOffer }) => signedOffer,
    );
  } catch {
    return [];
  }
}
