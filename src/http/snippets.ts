// The snippets document on the wire.
import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { ROUTES } from '#src/discovery/routes.ts';
import { snippetsDocument } from '#src/discovery/snippets.ts';
import type { HttpDeps } from './deps.ts';
import { documentFacts } from './document-facts.ts';
import { describe } from './operation.ts';
import { publisher } from './publish.ts';
import { Closed, Instant, Link } from './schema-parts.ts';

export const SnippetShown = Closed({
  id: Type.String(),
  title: Type.String(),
  language: Type.Union(['shell', 'typescript', 'python', 'json'].map((name) => Type.Literal(name))),
  description: Type.String(),
  code: Type.String(),
});

export const SnippetsDocument = Closed({
  ok: Type.Literal(true),
  service: Type.String(),
  generatedAt: Instant,
  purpose: Type.String(),
  payment: Closed({
    required: Type.Boolean({ description: 'Whether payment is enforced now.' }),
    route: Type.String(),
    price: Type.String(),
    network: Type.String({ description: 'CAIP-2.' }),
    networkName: Type.String(),
    scheme: Type.String(),
  }),
  groups: Type.Array(
    Closed({
      id: Type.String(),
      title: Type.String(),
      description: Type.String(),
      snippets: Type.Array(SnippetShown),
    }),
  ),
  links: Type.Record(Type.String(), Link),
});

export function snippetRoutes(deps: HttpDeps) {
  const facts = documentFacts(deps);
  const publish = publisher(facts);
  const served = publish('application/json', () => JSON.stringify(snippetsDocument(facts)));
  return new Elysia().get(
    ROUTES.snippets.path,
    ({ request }) => served(request),
    describe(ROUTES.snippets, {
      answers: { 200: ['The document.', SnippetsDocument], 304: ['It is as the caller has it.', null] },
    }),
  );
}
