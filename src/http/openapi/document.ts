// The interface description, made from the very routes that serve: OpenAPI 3.1.0 by way of @elysiajs/swagger, whose
// own pages (they load scripts from elsewhere) are never mounted in the service.
import { swagger } from '@elysiajs/swagger';
import { Type } from '@sinclair/typebox';
import { type AnyElysia, Elysia } from 'elysia';
import { operationId } from '#src/discovery/documents/api-index.ts';
import { JSON_TYPE } from '#src/discovery/documents/discovery-index.ts';
import { addressOf } from '#src/discovery/documents/document-parts.ts';
import { guidanceText, PURPOSE } from '#src/discovery/documents/guidance.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { requestExample } from '#src/discovery/request-examples.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { TAGS } from '#src/discovery/tags.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { documentAnswers, publisher } from '#src/http/response/conditional-get.ts';
import { type DocumentDeps, documentFacts } from '#src/http/routes/document-facts.ts';
import { describe } from './operation.ts';

/** `document`: of all groups, this one among them, so it is made when it is first asked for. */
export function openapiRoutes(deps: DocumentDeps, document: () => Promise<string>) {
  const serve = publisher(documentFacts(deps))(JSON_TYPE, document);
  return new Elysia().get(
    ROUTES.openapi.path,
    serve,
    describe(ROUTES.openapi, {
      answers: documentAnswers('The document.', Type.Object({ openapi: Type.Literal('3.1.0') })),
    }),
  );
}

type Operation = Record<string, unknown> & {
  operationId: string;
  readonly requestBody?: { readonly content: Record<string, Record<string, unknown>> };
};
type Document = Record<string, unknown> & {
  readonly info: Record<string, unknown>;
  readonly paths: Record<string, Record<string, Operation>>;
};

const SPEC_PATH = '/openapi-of-these-routes';

export async function openapiText(groups: readonly AnyElysia[], facts: Facts): Promise<string> {
  const described = new Elysia({ normalize: false }).use(
    swagger({
      path: '/openapi-page-of-these-routes',
      specPath: SPEC_PATH,
      excludeStaticFile: false,
      documentation: {
        info: {
          title: SERVICE.name,
          version: SERVICE.version,
          description: PURPOSE,
          contact: { name: SERVICE.name, url: addressOf(facts, ROUTES.frontPage) },
        },
        servers: [{ url: facts.baseUrl }],
        tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
        externalDocs: { description: ROUTES.docsPage.summary, url: addressOf(facts, ROUTES.docsPage) },
      },
    }),
  );
  for (const group of groups) described.use(group);
  const response = await described.handle(new Request(`http://localhost${SPEC_PATH}`));
  return JSON.stringify(finished((await response.json()) as Document, guidanceText(facts)));
}

/** The plugin says 3.0.3 and makes operation ids out of whole paths; guidance and examples it has no place for. */
function finished({ info, paths, ...document }: Document, guidance: string): Document {
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const id = operationId(method.toUpperCase(), path);
      if (id === null) throw new Error(`${method} ${path} is described, but is no listed route`);
      operation.operationId = id;
      const json = operation.requestBody?.content[JSON_TYPE];
      const example = requestExample(id);
      if (json !== undefined && example !== undefined) json.example = example;
    }
  }
  return {
    ...document,
    openapi: '3.1.0',
    info: { ...info, 'x-guidance': guidance },
    components: {},
    paths,
  };
}
