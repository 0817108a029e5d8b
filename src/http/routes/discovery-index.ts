// The documents that tell of the others, on the wire: the interface's index, the documents' index, the MCP manifest.
import { SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/sdk/types.js';
import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { apiIndex } from '#src/discovery/documents/api-index.ts';
import { documentIndex, JSON_TYPE } from '#src/discovery/documents/discovery-index.ts';
import { mcpManifest } from '#src/discovery/documents/mcp-manifest.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { describe, unlisted } from '#src/http/openapi/operation.ts';
import { documentAnswers, publisher } from '#src/http/response/conditional-get.ts';
import { type DocumentDeps, documentFacts } from './document-facts.ts';
import { heading, paymentTerms } from './document-schemas.ts';
import { Closed, Link } from './schema-parts.ts';

const endpoint = {
  method: Type.Union([Type.Literal('GET'), Type.Literal('POST')]),
  path: Type.String({ description: 'A parameter is written `{name}` (RFC 6570).' }),
  paid: Type.Boolean({ description: 'Charged where payment is enforced.' }),
  price: Type.Optional(Type.String({ description: 'Of a paid one alone: US dollars, as in $1.50.' })),
};

const Listed = Type.Array(
  Closed({ id: Type.String(), address: Link, mediaType: Type.String(), purpose: Type.String() }),
);

const ApiIndex = Closed({
  ...heading,
  version: Type.String(),
  description: Type.String(),
  payment: Closed(paymentTerms),
  operations: Type.Array(
    Closed({
      id: Type.String({ description: '`operationId` of the OpenAPI document.' }),
      ...endpoint,
      address: Type.String({ description: 'Absolute, with parameters as in `path`.' }),
      summary: Type.String(),
    }),
  ),
  documents: Listed,
  pages: Listed,
});

const DocumentIndex = Closed({
  ...heading,
  description: Type.String(),
  documents: Listed,
  wellKnown: Listed,
  transparencyLog: Listed,
  pages: Listed,
});

const McpManifest = Closed({
  ...heading,
  name: Type.String(),
  version: Type.String(),
  description: Type.String(),
  endpoint: Link,
  transport: Type.Literal('streamable-http'),
  protocolVersions: Type.Array(Type.String(), { description: 'The newest first.' }),
  tools: Type.Array(
    Closed(
      { name: Type.String(), title: Type.String(), description: Type.String(), ...endpoint },
      'A call of it is a call of this operation.',
    ),
  ),
  payment: Closed({
    ...paymentTerms,
    requestMeta: Type.String({ description: 'Member of `_meta` that carries the payment.' }),
    responseMeta: Type.String({ description: 'Member of `_meta` that carries the settlement.' }),
    unpaidCall: Type.String(),
    howToPay: Type.String(),
  }),
  documentation: Link,
});

export function indexDocumentRoutes(deps: DocumentDeps) {
  const facts = documentFacts(deps);
  const publish = publisher(facts);
  const published = (document: () => unknown) => publish(JSON_TYPE, () => JSON.stringify(document()));
  const documents = published(() => documentIndex(facts));
  const manifest = published(() => mcpManifest(facts, SUPPORTED_PROTOCOL_VERSIONS));
  return new Elysia()
    .get(
      ROUTES.index.path,
      published(() => apiIndex(facts)),
      describe(ROUTES.index, { answers: documentAnswers('The index.', ApiIndex) }),
    )
    .get(
      ROUTES.discovery.path,
      documents,
      describe(ROUTES.discovery, { answers: documentAnswers('The index.', DocumentIndex) }),
    )
    .get(
      ROUTES.discoveryMetadata.path,
      documents,
      describe(ROUTES.discoveryMetadata, { answers: documentAnswers('The index.', DocumentIndex) }),
    )
    .get(
      ROUTES.mcpManifest.path,
      manifest,
      describe(ROUTES.mcpManifest, { answers: documentAnswers('The manifest.', McpManifest) }),
    )
    .get(ROUTES.mcpWellKnown.path, manifest, unlisted);
}
