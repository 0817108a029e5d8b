// Compares the payment requirements of a 402 (x402 version 2, scheme exact) with the buyer's limits, and verifies the
// relay's signatures of the extension offer-receipt. Only the relay's published keys count, under its own name.
import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { DEFAULT_ASSETS, type ExactDefaultAssetInfo } from '@x402/evm';
import {
  decodeSignedOffers,
  extractJWSHeader,
  extractOffersFromPaymentRequired,
  isJWSSignedOffer,
  type SignedOffer,
  verifyOfferSignatureJWS,
} from '@x402/extensions/offer-receipt';
import { type KeyRecord, keyValidAt, toJwk } from '#src/domain/signing-keys/keys.ts';

export type OfferSigner = {
  /** The relay's did:web. */
  readonly did: string;
  /** Its published keys. */
  readonly keys: readonly KeyRecord[];
};

export type BuyerLimits = {
  /** Millionths of a US dollar, at most. */
  readonly maxPriceMicroUsd: bigint;
  /** CAIP-2. */
  readonly network: string;
  /** null: no payee was named, so no one is paid. */
  readonly payTo: string | null;
  /** The URL that is called. */
  readonly resourceUrl: string;
};

/** The payment requirements that were compared, and accepted if all findings are good. */
export type Terms = Omit<PaymentRequirements, 'extra'>;

export type Finding = {
  readonly name: 'scheme' | 'network' | 'asset' | 'price' | 'pay_to' | 'resource' | 'window' | 'signed_offer';
  readonly ok: boolean;
  readonly expected: string;
  readonly offered: string;
};

/** No webhook needs a longer validity of its payment authorization. */
const WINDOW_MAX_SECONDS = 300;

/**
 * Returns all findings, not only the first bad one. `accepted`: null if no requirement has the network and scheme `exact`.
 * `nowMs`: Unix ms.
 */
export async function checkOffer(
  required: PaymentRequired,
  limits: BuyerLimits,
  signedBy: OfferSigner,
  nowMs: number,
): Promise<{ readonly accepted: PaymentRequirements | null; readonly findings: readonly Finding[] }> {
  const { accepts, resource } = required;
  const onNetwork = accepts.filter(({ network }) => network === limits.network);
  const accepted = onNetwork.find(({ scheme }) => scheme === 'exact') ?? null;
  const offers = (of: readonly PaymentRequirements[], name: 'scheme' | 'network') =>
    [...new Set(of.map((each) => String(each[name])))].join(', ') || 'none';
  const findings: Finding[] = [
    finding('network', limits.network, offers(accepts, 'network'), onNetwork.length > 0),
    finding('scheme', 'exact', offers(onNetwork, 'scheme'), accepted !== null),
    finding('resource', limits.resourceUrl, resource.url, resource.url === limits.resourceUrl),
  ];
  if (accepted !== null) {
    findings.push(...termFindings(accepted, limits), await offerFinding(required, accepted, signedBy, nowMs));
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
  const { asset, amount, payTo, maxTimeoutSeconds: seconds, extra } = accepted;
  const { name, version, assetTransferMethod = 'eip3009' } = extra ?? {};
  const usdc = usdcOf(limits.network);
  // With another domain or transfer method it would be another kind of signature.
  const sameDomain = name === usdc?.name && version === usdc?.version && assetTransferMethod === 'eip3009';
  const sameAsset = usdc !== null && same(asset, usdc.asset) && sameDomain;
  const shown = `${asset} (${name} ${version}, ${assetTransferMethod})`;
  const expected =
    usdc === null
      ? 'a network with a known USDC contract'
      : `${usdc.asset} (${usdc.name} ${usdc.version}, eip3009)`;
  const cap = usdc === null ? 0n : atomicUnits(limits.maxPriceMicroUsd, usdc.decimals);
  const withinPrice = /^[1-9]\d{0,30}$/.test(amount) && BigInt(amount) <= cap;
  const samePayee = limits.payTo !== null && same(payTo, limits.payTo);
  const withinWindow = Number.isInteger(seconds) && seconds > 0 && seconds <= WINDOW_MAX_SECONDS;
  return [
    finding('asset', expected, shown, sameAsset),
    finding('price', `at most ${cap}`, amount, withinPrice),
    finding('pay_to', limits.payTo ?? 'none given', payTo, samePayee),
    finding('window', `at most ${WINDOW_MAX_SECONDS} s`, `${seconds} s`, withinWindow),
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
  required: PaymentRequired,
  accepted: PaymentRequirements,
  signedBy: OfferSigner,
  nowMs: number,
): Promise<Finding> {
  const expected = `these terms, signed by ${signedBy.did}`;
  const found = (offered: string, ok = false) => finding('signed_offer', expected, offered, ok);
  const signed = offersOf(required);
  if (signed.length === 0) return found('no signed offer');
  const problems: string[] = [];
  for (const each of signed) {
    const jws = isJWSSignedOffer(each) ? each : null;
    const verified = await verifiedJws(jws, signedBy, nowMs, verifyOfferSignatureJWS);
    if ('problem' in verified) {
      problems.push(verified.problem);
      continue;
    }
    const { payload } = verified;
    const sameTerms =
      payload.resourceUrl === required.resource.url &&
      TERMS.every((name) => payload[name] === accepted[name]);
    if (!sameTerms) problems.push('signed for other terms');
    else if (!(payload.validUntil * 1000 > nowMs)) problems.push('it has expired');
    else return found(`signed by ${verified.keyUrl}`, true);
  }
  return found(problems.join('; '));
}

const TERMS = ['scheme', 'network', 'asset', 'payTo', 'amount'] as const;

function offersOf(required: PaymentRequired): readonly SignedOffer[] {
  try {
    const offers = extractOffersFromPaymentRequired(required);
    return decodeSignedOffers(offers).map(({ signedOffer }) => signedOffer);
  } catch {
    return [];
  }
}

/** `atMs`: when it was signed. `problem`: for a person. */
export async function verifiedJws<S extends { readonly signature: string }, P>(
  signed: S | null,
  { did, keys }: OfferSigner,
  atMs: number,
  verify: (signed: S, key: ReturnType<typeof toJwk>) => Promise<P>,
): Promise<{ readonly payload: P; readonly keyUrl: string } | { readonly problem: string }> {
  if (signed === null) return { problem: 'not signed as a JWS' };
  try {
    const { alg, kid = '' } = extractJWSHeader(signed.signature);
    const [name, keyId] = kid.split('#');
    if (name !== did || keyId === undefined) return { problem: `signed by ${kid || 'an unnamed key'}` };
    const key = keys.find((candidate) => candidate.keyId === keyId);
    if (key === undefined || !keyValidAt(key, Math.floor(atMs / 1000)))
      return { problem: `${kid} is not a valid key of the relay at that time` };
    if (alg !== 'EdDSA') return { problem: `signed with ${alg}` };
    return { payload: await verify(signed, toJwk(key)), keyUrl: kid };
  } catch {
    return { problem: 'its signature is invalid' };
  }
}
