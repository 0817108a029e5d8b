// Settings of payments that are valid, and cost money if they are not meant.
import { checksumState } from '#src/lib/evm-address.ts';
import { defaultAssetOf, lowerHex, type Terms, type X402Settings } from './requirements.ts';

type Settings = Pick<X402Settings, 'payTo' | 'asset' | 'network' | 'priceUsd'> & {
  readonly refundFrom: string | null;
};

/** US dollars, above which stock clients of version 2 pay only if they are configured to. */
const CLIENTS_PAY = 1;

/** Each names its variable. */
export function termsWarnings({ payTo, asset, network, priceUsd, refundFrom }: Settings): readonly string[] {
  const warnings: string[] = [];
  const addresses = { X402_PAY_TO: payTo, X402_ASSET: asset, X402_REFUND_FROM: refundFrom };
  for (const [variable, address] of Object.entries(addresses))
    if (address !== null && checksumState(address) === 'absent')
      warnings.push(
        `${variable} has no checksum (EIP-55), so that a wrong digit is not noticed: compare ${address} with your wallet, or set it with upper and lower case letters as the wallet shows it`,
      );
  if (Number(priceUsd) > CLIENTS_PAY)
    warnings.push(
      `X402_PRICE is $${priceUsd}: stock clients refuse a price above $${CLIENTS_PAY} by default`,
    );
  const usdc = defaultAssetOf(network as Terms['network'])?.asset;
  if (asset !== null && usdc !== undefined && lowerHex(asset) !== lowerHex(usdc))
    warnings.push(
      `X402_ASSET is not the USDC of ${network} (${usdc}): stock clients refuse other tokens by default`,
    );
  else if (asset !== null && usdc === undefined)
    warnings.push(
      `X402_ASSET is a token of ${network}, whose USDC is not known: stock clients refuse it by default`,
    );
  if (refundFrom !== null && lowerHex(refundFrom) !== lowerHex(payTo))
    warnings.push(
      'X402_REFUND_FROM must be a wallet that sends for this operator alone: a withdrawal of a payer from an exchange would count as its refund',
    );
  return warnings;
}
