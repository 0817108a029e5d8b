// Amounts as a person reads them: in the money of the assets that are known.
import { knownAssetOf } from '#src/adapters/payments/requirements.ts';

/** 3000 units of Base's USDC as `$0.003 USDC`; of an asset that is not known, the units and its contract. */
export function showAmount({
  network,
  asset,
  amount,
}: {
  readonly network: string | null;
  readonly asset: string | null;
  readonly amount: string;
}): string {
  const known = network === null || asset === null ? null : knownAssetOf(network, asset);
  if (known === null) return `${amount} units${asset === null ? '' : ` of ${asset}`}`;
  const digits = amount.padStart(known.decimals + 1, '0');
  const part = digits.slice(digits.length - known.decimals).replace(/0+$/, '');
  const whole = digits.slice(0, digits.length - known.decimals);
  return `$${whole}${part === '' ? '' : `.${part}`} ${known.symbol}`;
}
