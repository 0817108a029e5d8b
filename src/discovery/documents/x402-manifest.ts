// What is for sale, for crawlers of x402: the short form names the addresses, the long one is a page of a facilitator's
// /discovery/resources. In demo mode nothing is for sale, and both say so by listing nothing.

import type { Facts } from '#src/discovery/facts.ts';
import { PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import type { Route } from '#src/domain/event-fields.ts';
import { SERVICE } from '#src/domain/limits.ts';
import type { AskedFor } from '#src/domain/payment/requirements.ts';
import { addressOf, chargeInWords } from './document-parts.ts';
import { PURPOSE } from './guidance.ts';

const X402_VERSION = 2;

/** `/.well-known/x402`. */
export function x402Manifest(facts: Facts) {
  return {
    x402Version: X402_VERSION,
    kind: 'resource-server',
    name: SERVICE.name,
    description: `${PURPOSE} ${chargeInWords(facts)}`,
    resources: forSale(facts).map(([, { resource }]) => resource),
    docs: addressOf(facts, ROUTES.docsPage),
    updated: facts.generatedAt,
  };
}

/** `/.well-known/x402.json`. */
export function x402Items(facts: Facts) {
  const items = forSale(facts).map(([route, { resource, accepts, extensions }]) => ({
    resource,
    type: 'http',
    x402Version: X402_VERSION,
    accepts,
    lastUpdated: facts.generatedAt,
    description: PAID_ROUTES[route].description,
    mimeType: 'application/json',
    serviceName: SERVICE.name,
    iconUrl: addressOf(facts, ROUTES.favicon),
    extensions,
  }));
  return {
    x402Version: X402_VERSION,
    lastUpdated: facts.generatedAt,
    items,
    pagination: { limit: items.length, offset: 0, total: items.length },
  };
}

function forSale({ askedFor }: Facts): readonly (readonly [Route, AskedFor])[] {
  if (askedFor === null) return [];
  const routes = ['execute/webhook', 'execute/guided-webhook'] as const;
  return routes.map((route) => [route, askedFor[route]]);
}
