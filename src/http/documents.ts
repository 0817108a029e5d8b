// The main documents for agents, on the wire: each made once, from the facts of this deployment.
import type { TSchema } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { capabilitiesDocument } from '#src/discovery/capabilities.ts';
import { catalogDocument } from '#src/discovery/catalog.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { pricingDocument } from '#src/discovery/pricing.ts';
import { quickstartDocument } from '#src/discovery/quickstart.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { secretsPolicyDocument } from '#src/discovery/secrets-policy.ts';
import type { HttpDeps } from './deps.ts';
import { documentFacts } from './document-facts.ts';
import { CatalogDocument, QuickstartDocument } from './document-schemas.ts';
import { CapabilitiesDocument, PricingDocument, SecretsPolicyDocument } from './document-schemas-rules.ts';
import { describe } from './operation.ts';
import { publisher } from './publish.ts';

export function documentRoutes(deps: HttpDeps) {
  const facts = documentFacts(deps);
  const publish = publisher(facts);
  const serve = (document: (facts: Facts) => object) => {
    const answer = publish('application/json', () => JSON.stringify(document(facts)));
    return ({ request }: { request: Request }) => answer(request);
  };
  return new Elysia()
    .get(
      ROUTES.catalog.path,
      serve(catalogDocument),
      describe(ROUTES.catalog, told('The catalog.', CatalogDocument)),
    )
    .get(
      ROUTES.quickstart.path,
      serve(quickstartDocument),
      describe(ROUTES.quickstart, told('The quickstart.', QuickstartDocument)),
    )
    .get(
      ROUTES.pricing.path,
      serve(pricingDocument),
      describe(ROUTES.pricing, told('The pricing.', PricingDocument)),
    )
    .get(
      ROUTES.capabilities.path,
      serve(capabilitiesDocument),
      describe(ROUTES.capabilities, told('The capabilities.', CapabilitiesDocument)),
    )
    .get(
      ROUTES.secretsPolicy.path,
      serve(secretsPolicyDocument),
      describe(ROUTES.secretsPolicy, told('The policy.', SecretsPolicyDocument)),
    );
}

const told = (text: string, schema: TSchema) => ({
  answers: { 200: [text, schema], 304: ['Not changed.', null] } as const,
});
