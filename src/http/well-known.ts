// Well-known files, robots, llms.txt and icon.
import { Elysia } from 'elysia';
import { llmsText } from '#src/discovery/llms.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import type { HttpDeps } from './deps.ts';
import { documentFacts } from './document-facts.ts';
import { describe } from './operation.ts';
import { publisher } from './publish.ts';

export function wellKnownRoutes(deps: HttpDeps) {
  const facts = documentFacts(deps);
  const publish = publisher(facts);
  const guide = publish('text/plain; charset=utf-8', () => llmsText(facts));
  return new Elysia().get(
    ROUTES.llms.path,
    ({ request }) => guide(request),
    describe(ROUTES.llms, {
      answers: { 200: ['The guide, as Markdown.', 'text/plain'], 304: ['Not changed.', null] },
    }),
  );
}
