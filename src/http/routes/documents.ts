// The main documents for agents, on the wire: each made once, from the facts of this deployment.
import { Elysia } from 'elysia';
import { capabilitiesDocument } from '#src/discovery/documents/capabilities.ts';
import { catalogDocument } from '#src/discovery/documents/catalog.ts';
import { JSON_TYPE } from '#src/discovery/documents/discovery-index.ts';
import { pricingDocument } from '#src/discovery/documents/pricing.ts';
import { quickstartDocument } from '#src/discovery/documents/quickstart.ts';
import { secretsPolicyDocument } from '#src/discovery/documents/secrets-policy.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { describe } from '#src/http/openapi/operation.ts';
import { documentAnswers, publisher } from '#src/http/response/conditional-get.ts';
import { type DocumentDeps, documentFacts } from './document-facts.ts';
import { CatalogDocument, QuickstartDocument } from './document-schemas.ts';
import { CapabilitiesDocument, PricingDocument, SecretsPolicyDocument } from './document-schemas-rules.ts';

export function documentRoutes(deps: DocumentDeps) {
  const facts = documentFacts(deps);
  const publish = publisher(facts);
  const serve = (document: (facts: Facts) => object) =>
    publish(JSON_TYPE, () => JSON.stringify(document(facts)));
  return new Elysia()
    .get(
      ROUTES.catalog.path,
      serve(catalogDocument),
      describe(ROUTES.catalog, { answers: documentAnswers('The catalog.', CatalogDocument) }),
    )
    .get(
      ROUTES.quickstart.path,
      serve(quickstartDocument),
      describe(ROUTES.quickstart, { answers: documentAnswers('The quickstart.', QuickstartDocument) }),
    )
    .get(
      ROUTES.pricing.path,
      serve(pricingDocument),
      describe(ROUTES.pricing, { answers: documentAnswers('The pricing.', PricingDocument) }),
    )
    .get(
      ROUTES.capabilities.path,
      serve(capabilitiesDocument),
      describe(ROUTES.capabilities, { answers: documentAnswers('The capabilities.', CapabilitiesDocument) }),
    )
    .get(
      ROUTES.secretsPolicy.path,
      serve(secretsPolicyDocument),
      describe(ROUTES.secretsPolicy, { answers: documentAnswers('The policy.', SecretsPolicyDocument) }),
    );
}
