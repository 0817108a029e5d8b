// `GET /api`: every operation of the interface description, and where to read on.

import type { Facts } from '#src/discovery/facts.ts';
import { pathTemplate, type RouteFacts } from '#src/discovery/route-facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { documentsListed, pagesListed } from './discovery-index.ts';
import { addressOf, endpointOf, heading, paymentTerms } from './document-parts.ts';
import { PURPOSE } from './guidance.ts';

export type OperationListed = ReturnType<typeof endpointOf> & {
  /** `operationId` of the interface description. */
  readonly id: string;
  readonly address: string;
  readonly summary: string;
  /** Of a paid one alone. */
  readonly price?: string;
};

export function apiIndex(facts: Facts) {
  return {
    ...heading(facts),
    version: SERVICE.version,
    description: PURPOSE,
    payment: paymentTerms(facts),
    operations: operationsListed(facts),
    documents: documentsListed(facts),
    pages: pagesListed(facts),
  };
}

function operationsListed(facts: Facts): readonly OperationListed[] {
  return OPERATIONS.map(([id, route]) => ({
    id,
    ...endpointOf(route),
    address: addressOf(facts, route),
    summary: route.summary,
    ...(route.paid ? { price: facts.offer.price } : {}),
  }));
}

const OPERATIONS: readonly (readonly [id: string, route: RouteFacts])[] = Object.entries(ROUTES).filter(
  ([, { listed }]) => listed,
);

/** The id of an operation; null where it is no listed one. `path`: with its parameters as in `{id}`. */
export function operationId(method: string, path: string): string | null {
  const found = OPERATIONS.find(([, route]) => route.method === method && pathTemplate(route.path) === path);
  return found?.[0] ?? null;
}
