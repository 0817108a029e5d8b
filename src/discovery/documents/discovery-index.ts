// The index of all documents, and the index of the interface: every operation.
import { addressOf, endpoint, openDocument, paymentTerms } from '#src/discovery/document.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { PURPOSE } from '#src/discovery/guidance.ts';
import {
  DOCUMENT_ROUTES,
  LOG_ROUTES,
  OPERATIONS,
  PAGE_ROUTES,
  ROUTES,
  type RouteFacts,
  WELL_KNOWN_ROUTES,
} from '#src/discovery/routes.ts';
import { SERVICE } from '#src/domain/limits.ts';

/** `id`: the document's name in the lists of this service. */
const listed = (facts: Facts, routes: Readonly<Record<string, RouteFacts>>) =>
  Object.entries(routes).map(([id, route]) => {
    const { mediaType, description: purpose } = route;
    return { id, address: addressOf(facts, route), mediaType, purpose };
  });

export const discoveryIndex = openDocument([ROUTES.discovery, ROUTES.discoveryMetadata], (facts) => ({
  description:
    'Every document of this service. Each answers a GET, free; an address with braces is a template (RFC 6570). Those of the transparency log exist only if the relay has one.',
  documents: listed(facts, DOCUMENT_ROUTES),
  wellKnown: listed(facts, WELL_KNOWN_ROUTES),
  transparencyLog: listed(facts, LOG_ROUTES),
  pages: listed(facts, PAGE_ROUTES),
}));

export const apiIndex = openDocument([ROUTES.index], (facts) => ({
  version: SERVICE.version,
  description: PURPOSE,
  payment: paymentTerms(facts),
  operations: OPERATIONS.map(([id, route]) => ({
    id,
    ...priced(facts, route),
    address: addressOf(facts, route),
    summary: route.summary,
  })),
  discovery: addressOf(facts, ROUTES.discovery),
}));

/** The endpoint of an operation or tool, with its price if it is paid. */
export function priced({ offer }: Facts, route: RouteFacts) {
  return { ...endpoint(route), ...(route.paid ? { price: offer.price } : {}) };
}
