// The interface description: OpenAPI 3.1.0, assembled by @elysiajs/swagger from the operations that the served routes
// declare (operation.ts). The plugin's own pages load scripts from elsewhere and are not served.
import { filterPaths, registerSchemaPath } from '@elysiajs/swagger/utils';
import { Type } from '@sinclair/typebox';
import { type AnyElysia, Elysia } from 'elysia';
import { addressOf, JSON_TYPE } from '#src/discovery/document.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { guidanceText, PURPOSE } from '#src/discovery/guidance.ts';
import { ROUTES, TAGS } from '#src/discovery/routes.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { documentAnswers, publisher } from '#src/http/response/conditional-get.ts';
import { describe } from './operation.ts';

/** `text`: of all route groups, this one among them, so it is called at the first request. */
export function openapiRoutes(facts: Facts, text: () => string) {
  return new Elysia().get(
    ROUTES.openapi.path,
    publisher(facts)(JSON_TYPE, text),
    describe(ROUTES.openapi, {
      answers: documentAnswers('The document.', Type.Object({ openapi: Type.Literal('3.1.0') })),
    }),
  );
}

export function openapiText(groups: readonly AnyElysia[], facts: Facts): string {
  const schema = {};
  for (const { method, path, hooks } of groups.flatMap(({ routes }) => routes)) {
    if (hooks.detail?.hide !== true) registerSchemaPath({ schema, method, path, hook: hooks, models: {} });
  }
  return JSON.stringify({
    openapi: '3.1.0',
    info: {
      title: SERVICE.name,
      description: PURPOSE,
      version: SERVICE.version,
      contact: { name: SERVICE.name, url: addressOf(facts, ROUTES.frontPage) },
      'x-guidance': guidanceText(facts),
    },
    servers: [{ url: facts.baseUrl }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    externalDocs: { description: ROUTES.docsPage.summary, url: addressOf(facts, ROUTES.docsPage) },
    paths: filterPaths(schema, { excludeStaticFile: false, exclude: [] }),
    components: {},
  });
}
