// What several snippets share: addresses, a buyer's terms, and what a call does to the buyer's money.
import { microUsd } from '#src/domain/payment/money.ts';
import { type Facts, networkName, usd } from '../facts.ts';
import { ACTION } from '../paid-routes.ts';
import type { RouteFacts } from '../route-facts.ts';

/** What a buyer sends with an action to be judged. */
export const buyerPolicy = ({ offer }: Facts) => ({
  maxPriceUsd: usd(offer),
  allowedNetworks: [offer.network],
});

/** The address up to its parameter. */
export const beforeParameter = ({ baseUrl }: Facts, { path }: RouteFacts): string =>
  baseUrl + path.slice(0, path.indexOf(':'));

/** Where everybody is one payer, the examples' key is everybody's: a description's last sentence, or nothing. */
export const sharedKey = ({ mode }: Facts): string =>
  mode === 'demo'
    ? ` In demo mode all callers are one payer: put a key of your own in place of ${ACTION.idempotencyKey}, or whoever used it before with another request makes the answer 409 idempotency_conflict.`
    : '';

export function charge({ mode, offer }: Facts): string {
  const price = `${offer.price} on ${networkName(offer.network)}`;
  return mode === 'demo'
    ? `This service runs in demo mode: the call goes through without payment. Where payment is enforced it costs ${price}.`
    : `Costs ${price}. On a service in demo mode the same code goes through without payment.`;
}

/** What a careful buyer of this service writes down before it signs anything. */
export type Terms = {
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
  /** Atomic units of `asset`. */
  readonly maxAmount: string;
};

/** In demo mode nobody is paid: the zero address, which a reader must replace. */
export function termsOf({ offer, askedFor }: Facts): Terms {
  const [asked = {}] = askedFor?.['execute/webhook'].accepts ?? [];
  const text = (value: unknown, otherwise: string) => (typeof value === 'string' ? value : otherwise);
  return {
    network: text(asked.network, offer.network),
    asset: text(asked.asset, NOBODY),
    payTo: text(asked.payTo, NOBODY),
    maxAmount: text(asked.amount, String(microUsd(offer.price) ?? 0n)),
  };
}

const NOBODY = `0x${'0'.repeat(40)}`;
