// The documents that tell of the others, on the wire: the interface's index, the documents' index, the MCP manifest.
import { SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/sdk/types.js';
import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { apiIndex } from '#src/discovery/api-index.ts';
import { documentIndex, JSON_TYPE } from '#src/discovery/document-index.ts';
import { mcpManifest } from '#src/discovery/mcp-manifest.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import type { HttpDeps } from './deps.ts';
import { documentFacts } from './document-facts.ts';
import { describe, unlisted } from './operation.ts';
import { publisher } from './publish.ts';
import { Closed, Instant, Link } from './schema-parts.ts';

const KNOWN = ['It is as the caller has it.', null] as const;

const heading = { ok: Type.Literal(true), service: Type.String(), generatedAt: Instant };

const endpoint = {
  method: Type.Union([Type.Literal('GET'), Type.Literal('POST')]),
  path: Type.String({ description: 'A parameter is written `{name}` (RFC 6570).' }),
  paid: Type.Boolean({ description: 'Charged where payment is enforced.' }),
  price: Type.Optional(Type.String({ description: 'Of a paid one alone: US dollars, as in $1.50.' })),
};

const payment = {
  required: Type.Boolean({ description: 'Whether payment is enforced now.' }),
  scheme: Type.String(),
  network: Type.String({ description: 'CAIP-2.' }),
  networkName: Type.String(),
  price: Type.String(),
};

const Listed = Type.Array(
  Closed({ id: Type.String(), address: Link, mediaType: Type.String(), purpose: Type.String() }),
);

const ApiIndex = Closed({
  ...heading,
  version: Type.String(),
  description: Type.String(),
  payment: Closed(payment),
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
    ...payment,
    requestMeta: Type.String({ description: 'Member of `_meta` that carries the payment.' }),
    responseMeta: Type.String({ description: 'Member of `_meta` that carries the settlement.' }),
    unpaidCall: Type.String(),
    howToPay: Type.String(),
  }),
  documentation: Link,
});

export function indexDocumentRoutes(deps: HttpDeps) {
  const facts = documentFacts(deps);
  const publish = publisher(facts);
  const published = (document: () => unknown) => {
    const serve = publish(JSON_TYPE, () => JSON.stringify(document()));
    return ({ request }: { readonly request: Request }) => serve(request);
  };
  const documents = published(() => documentIndex(facts));
  const manifest = published(() => mcpManifest(facts, SUPPORTED_PROTOCOL_VERSIONS));
  return new Elysia()
    .get(
      ROUTES.index.path,
      published(() => apiIndex(facts)),
      describe(ROUTES.index, { answers: { 200: ['The index.', ApiIndex], 304: KNOWN } }),
    )
    .get(
      ROUTES.discovery.path,
      documents,
      describe(ROUTES.discovery, { answers: { 200: ['The index.', DocumentIndex], 304: KNOWN } }),
    )
    .get(
      ROUTES.discoveryMetadata.path,
      documents,
      describe(ROUTES.discoveryMetadata, { answers: { 200: ['The index.', DocumentIndex], 304: KNOWN } }),
    )
    .get(
      ROUTES.mcpManifest.path,
      manifest,
      describe(ROUTES.mcpManifest, { answers: { 200: ['The manifest.', McpManifest], 304: KNOWN } }),
    )
    .get(ROUTES.mcpWellKnown.path, manifest, unlisted);
}
