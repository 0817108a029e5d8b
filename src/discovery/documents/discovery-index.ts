// The index of all documents, and the index of the interface: every operation, document, well-known file and page.
import { type Static, Type } from '@sinclair/typebox';
import { addressOf, document, endpoint, paymentTerms, Text, termsSchema } from '#src/discovery/document.ts';
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
import { Closed, Link, OneOf } from '#src/domain/schema-parts.ts';

/** `id`: the document's name in the lists of this service. */
const Listed = Type.Array(Closed({ id: Text, address: Link, mediaType: Text, purpose: Text }));

const listed = (facts: Facts, routes: Readonly<Record<string, RouteFacts>>): Static<typeof Listed> =>
  Object.entries(routes).map(([id, route]) => {
    const { mediaType, description: purpose } = route;
    return { id, address: addressOf(facts, route), mediaType, purpose };
  });

/** The endpoint of an operation or tool with its price. */
export const pricedSchema = {
  method: OneOf('GET', 'POST'),
  path: Type.String({ description: 'A parameter is written `{name}` (RFC 6570).' }),
  paid: Type.Boolean({ description: 'Charged where payment is enforced.' }),
  price: Type.Optional(Type.String({ description: 'Only of a paid one: US dollars, as in $1.50.' })),
};

export const discoveryIndex = document([ROUTES.discovery, ROUTES.discoveryMetadata], {
  description: Text,
  documents: Listed,
  wellKnown: Listed,
  transparencyLog: Listed,
  pages: Listed,
})((facts) => ({
  description:
    'Every document of this service. Each answers a GET, free; an address with braces is a template (RFC 6570). Those of the transparency log exist only if the relay has one.',
  documents: listed(facts, DOCUMENT_ROUTES),
  wellKnown: listed(facts, WELL_KNOWN_ROUTES),
  transparencyLog: listed(facts, LOG_ROUTES),
  pages: listed(facts, PAGE_ROUTES),
}));

export const apiIndex = document([ROUTES.index], {
  version: Text,
  description: Text,
  payment: Closed(termsSchema),
  operations: Type.Array(
    Closed({
      id: Type.String({ description: '`operationId` of the OpenAPI document.' }),
      ...pricedSchema,
      address: Type.String({ description: 'Absolute, with parameters as in `path`.' }),
      summary: Text,
    }),
  ),
  documents: Listed,
  pages: Listed,
})((facts) => ({
  version: SERVICE.version,
  description: PURPOSE,
  payment: paymentTerms(facts),
  operations: OPERATIONS.map(([id, route]) => ({
    id,
    ...priced(facts, route),
    address: addressOf(facts, route),
    summary: route.summary,
  })),
  documents: listed(facts, DOCUMENT_ROUTES),
  pages: listed(facts, PAGE_ROUTES),
}));

export function priced({ offer }: Facts, route: RouteFacts) {
  return { ...endpoint(route), ...(route.paid ? { price: offer.price } : {}) };
}
