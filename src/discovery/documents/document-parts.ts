// What every document begins with, and how it tells addresses, endpoints and payment.

import { type Facts, networkName, usd } from '#src/discovery/facts.ts';
import { pathTemplate, type RouteFacts } from '#src/discovery/route-facts.ts';
import { SERVICE } from '#src/domain/limits.ts';

export const heading = ({ generatedAt }: Facts) => ({ ok: true, service: SERVICE.name, generatedAt });

/** Absolute; a parameter stays as in `{id}` (RFC 6570). */
export const addressOf = ({ baseUrl }: Pick<Facts, 'baseUrl'>, { path }: RouteFacts): string =>
  `${baseUrl}${pathTemplate(path)}`;

/** Whether the canary can be the target of an execution at all: targets are https. */
export const isOwnTarget = ({ baseUrl }: Pick<Facts, 'baseUrl'>): boolean => baseUrl.startsWith('https://');

/** `paid`: a paid route, charged where payment is enforced. */
export const endpointOf = ({ method, path, paid }: RouteFacts) => ({
  method,
  path: pathTemplate(path),
  paid,
});

/** `required`: whether payment is enforced now. */
export function paymentTerms({ mode, offer }: Facts) {
  return {
    required: mode === 'x402',
    scheme: offer.scheme,
    network: offer.network,
    networkName: networkName(offer.network),
    price: offer.price,
  };
}

/** In a sentence or two: whether a paid route is charged now, and what a call costs. */
export function chargeInWords(facts: Facts): string {
  const { offer, mode } = facts;
  const terms = `${usd(offer)} USD by x402, scheme ${offer.scheme}, on ${networkName(offer.network)} (${offer.network})`;
  return mode === 'x402'
    ? `Payment is enforced: a call costs ${terms}.`
    : `Demo mode: payment is not enforced and nobody is charged now. Where it is enforced, a call costs ${terms}.`;
}
