// What makes a payment the one that it is: its authorization, as the chain tells one from another.
import type { PaymentReserved } from './events.ts';

/** Its SHA-256, lower-case hex, names the payment's stream. Addresses and nonce as they are recorded. */
export const identityText = ({
  network,
  asset,
  payer,
  nonce,
}: Pick<PaymentReserved, 'network' | 'asset' | 'payer' | 'nonce'>): string =>
  `${network}:${asset}:${payer}:${nonce}`;
