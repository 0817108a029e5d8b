// Well-known files, robots, llms.txt and icon.
import { Elysia } from 'elysia';
import { agentManifest } from '#src/discovery/documents/agent-manifest.ts';
import { apiCatalog } from '#src/discovery/documents/api-catalog.ts';
import {
  ICO_TYPE,
  JSON_TYPE,
  LINKSET_TYPE,
  SVG_TYPE,
  TEXT_TYPE,
} from '#src/discovery/documents/discovery-index.ts';
import { llmsText } from '#src/discovery/documents/llms.ts';
import { robotsText } from '#src/discovery/documents/robots.ts';
import { x402Items, x402Manifest } from '#src/discovery/documents/x402-manifest.ts';
import { iconIco, iconSvg } from '#src/discovery/icon.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { describe, unlisted } from '#src/http/openapi/operation.ts';
import { publisher } from '#src/http/response/conditional-get.ts';
import { CACHE_SHORTLY } from '#src/http/response/json.ts';
import { type DocumentDeps, documentFacts } from './document-facts.ts';

export function wellKnownRoutes(deps: DocumentDeps) {
  const facts = documentFacts(deps);
  const publish = publisher(facts);
  const json = (mediaType: string, document: () => unknown) =>
    publish(mediaType, () => JSON.stringify(document()));
  return new Elysia()
    .get(
      ROUTES.x402.path,
      json(JSON_TYPE, () => x402Manifest(facts)),
      unlisted,
    )
    .get(
      ROUTES.x402Items.path,
      json(JSON_TYPE, () => x402Items(facts)),
      unlisted,
    )
    .get(
      ROUTES.agent.path,
      json(JSON_TYPE, () => agentManifest(facts)),
      unlisted,
    )
    .get(
      ROUTES.apiCatalog.path,
      json(LINKSET_TYPE, () => apiCatalog(facts)),
      unlisted,
    )
    .get(
      ROUTES.robots.path,
      publish(TEXT_TYPE, () => robotsText(facts)),
      unlisted,
    )
    .get(
      ROUTES.favicon.path,
      publish(SVG_TYPE, () => iconSvg),
      unlisted,
    )
    .get(ROUTES.faviconIco.path, ico, unlisted)
    .get(
      ROUTES.llms.path,
      publish(TEXT_TYPE, () => llmsText(facts)),
      describe(ROUTES.llms, {
        answers: {
          200: ['The guide, as Markdown.', 'text/plain'],
          304: ['It is as the caller has it.', null],
        },
      }),
    );
}

function ico(): Response {
  return new Response(ICON, { headers: { 'content-type': ICO_TYPE, ...CACHE_SHORTLY } });
}

const ICON = iconIco();
