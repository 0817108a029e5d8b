// Compares the payment requirements of a 402 (x402 version 2, scheme exact) with the buyer's limits.
import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { DEFAULT_ASSETS, type ExactDefaultAssetInfo } from '@x402/evm';

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

export type Finding = {
  readonly name: 'network' | 'asset' | 'price' | 'pay_to' | 'resource';
  readonly ok: boolean;
  readonly expected: string;
  readonly offered: string;
};

/** Returns all findings, not only the first bad one. `accepted`: null if no requirement has the network and scheme `exact`. */
export function checkOffer(
  { accepts, resource }: PaymentRequired,
  { maxPriceMicroUsd, network, payTo, resourceUrl }: BuyerLimits,
): { readonly accepted: PaymentRequirements | null; readonly findings: readonly Finding[] } {
  const accepted = accepts.find((each) => each.network === network && each.scheme === 'exact') ?? null;
  const offers = accepts.map((each) => `${each.scheme} on ${each.network}`).join(', ') || 'none';
  const findings = [
    finding('network', `exact on ${network}`, offers, accepted !== null),
    finding('resource', resourceUrl, resource.url, resource.url === resourceUrl),
  ];
  if (accepted === null) return { accepted, findings };
  const usdc = usdcOf(network);
  const cap = (maxPriceMicroUsd * 10n ** BigInt(usdc?.decimals ?? 0)) / 1_000_000n;
  const { asset, amount } = accepted;
  const method = accepted.extra?.assetTransferMethod ?? 'eip3009';
  const withinPrice = /^[1-9]\d{0,30}$/.test(amount) && BigInt(amount) <= cap;
  findings.push(
    finding(
      'asset',
      `${usdc?.asset ?? 'a network with a known USDC contract'} by eip3009`,
      `${asset} by ${method}`,
      same(asset, usdc?.asset) && method === 'eip3009',
    ),
    finding('price', `at most ${cap}`, amount, withinPrice),
    finding('pay_to', payTo ?? 'none given', accepted.payTo, same(accepted.payTo, payTo)),
  );
  return { accepted, findings };
}

const finding = (name: Finding['name'], expected: string, offered: unknown, ok: boolean): Finding => ({
  name,
  ok,
  expected,
  offered: String(offered),
});

const same = (a: string, b: string | null | undefined): boolean => a.toLowerCase() === b?.toLowerCase();

function usdcOf(network: string): ExactDefaultAssetInfo | undefined {
  const known = (DEFAULT_ASSETS as Record<string, readonly ExactDefaultAssetInfo[]>)[network];
  return known?.find(({ symbol }) => symbol === 'USDC');
}
