// The interface description, made from the very routes that serve: OpenAPI 3.1.0 by way of @elysiajs/swagger, whose
// own pages (they load scripts from elsewhere) are never mounted in the service.
import { swagger } from '@elysiajs/swagger';
import { Type } from '@sinclair/typebox';
import { type AnyElysia, Elysia } from 'elysia';
import { ROUTES } from '#src/discovery/routes.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { CACHE_SHORTLY } from './answer.ts';
import type { HttpSettings } from './deps.ts';
import { describe } from './operation.ts';

/** The document as text, written once. */
export function openapiRoutes(document: () => Promise<string>) {
  return new Elysia().get(
    ROUTES.openapi.path,
    async () =>
      new Response(await document(), { headers: { 'content-type': 'application/json', ...CACHE_SHORTLY } }),
    describe(ROUTES.openapi, {
      answers: { 200: ['The document.', Type.Object({ openapi: Type.Literal('3.1.0') })] },
    }),
  );
}

type Operation = Record<string, unknown> & { operationId: string };
type Document = Record<string, unknown> & { paths: Record<string, Record<string, Operation>> };

const SPEC_PATH = '/openapi-of-these-routes';

export async function openapiText(groups: readonly AnyElysia[], settings: HttpSettings): Promise<string> {
  const described = new Elysia({ normalize: false }).use(
    swagger({
      path: '/openapi-page-of-these-routes',
      specPath: SPEC_PATH,
      excludeStaticFile: false,
      documentation: {
        info: {
          title: SERVICE.name,
          version: SERVICE.version,
          description:
            'Makes one outbound HTTPS request for an agent and answers with a signed receipt anyone can verify.',
          contact: { name: SERVICE.name, url: settings.baseUrl },
        },
        servers: [{ url: settings.baseUrl }],
      },
    }),
  );
  for (const group of groups) described.use(group);
  const response = await described.handle(new Request(`http://localhost${SPEC_PATH}`));
  return JSON.stringify(normalised((await response.json()) as Document));
}

/** The plugin says 3.0.3, makes operation ids out of whole paths, and repeats nothing else that is wrong here. */
function normalised({ paths, ...document }: Document): Document {
  for (const operations of Object.values(paths)) {
    for (const operation of Object.values(operations)) {
      operation.operationId = operation.operationId.replace(/[^A-Za-z0-9]+(.)/g, (_, next) =>
        next.toUpperCase(),
      );
    }
  }
  return { ...document, openapi: '3.1.0', components: {}, paths };
}
