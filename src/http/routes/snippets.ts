// The snippets document on the wire.
import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { JSON_TYPE } from '#src/discovery/documents/discovery-index.ts';
import { snippetsDocument } from '#src/discovery/documents/snippets.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { describe } from '#src/http/openapi/operation.ts';
import { documentAnswers, publisher } from '#src/http/response/conditional-get.ts';
import { type DocumentDeps, documentFacts } from './document-facts.ts';
import { heading, Path, paymentTerms } from './document-schemas.ts';
import { Closed, Link } from './schema-parts.ts';
import { SnippetShown } from './snippet-schemas.ts';

const SnippetsDocument = Closed({
  ...heading,
  purpose: Type.String(),
  payment: Closed({ ...paymentTerms, route: Path }),
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

export function snippetRoutes(deps: DocumentDeps) {
  const facts = documentFacts(deps);
  const serve = publisher(facts)(JSON_TYPE, () => JSON.stringify(snippetsDocument(facts)));
  return new Elysia().get(
    ROUTES.snippets.path,
    serve,
    describe(ROUTES.snippets, { answers: documentAnswers('The document.', SnippetsDocument) }),
  );
}
