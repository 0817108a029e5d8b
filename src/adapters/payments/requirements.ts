// What is asked for of each paid route, made once: resource, requirements, what catalogues may publish.
import type { PaymentRequired } from '@x402/core/types';
import type { PaymentRequirements as PaymentRequirementsV1 } from 'x402/types';
import type { JsonObject } from '#src/domain/canonical-json.ts';
import type { Route } from '#src/domain/event-fields.ts';
import { SERVICE } from '#src/domain/limits.ts';
import type { AskedFor } from '#src/domain/payment/requirements.ts';
import { type Discovery, describeRoute } from './discovery.ts';
import { acceptsV1, type PaidRoute, type PaidRoutes, resourceOf, type Terms } from './terms.ts';

export type AskedRoute = {
  /** Version 2, without what changes from answer to answer: `error` and the signed offer. */
  readonly required: PaymentRequired;
  readonly acceptsV1: readonly PaymentRequirementsV1[];
  readonly discovery: Discovery;
};

export type Asked = {
  readonly terms: Terms;
  readonly routes: Readonly<Record<Route, AskedRoute>>;
  /** The route that a payer says it pays for; the plain one where it names none of ours. */
  routeOf(resourceUrl: string | null): AskedRoute;
};

export function whatIsAsked(terms: Terms, baseUrl: string, paid: PaidRoutes): Asked {
  const ask = (route: PaidRoute): AskedRoute => {
    const resource = resourceOf(baseUrl, route, SERVICE.name);
    const discovery = describeRoute(route);
    return {
      required: { x402Version: 2, resource, accepts: [terms.requirements] },
      acceptsV1: acceptsV1(terms, resource, discovery.outputSchemaV1),
      discovery,
    };
  };
  const routes = {
    'execute/webhook': ask(paid['execute/webhook']),
    'execute/guided-webhook': ask(paid['execute/guided-webhook']),
  };
  return {
    terms,
    routes,
    routeOf: (resourceUrl) =>
      Object.values(routes).find(({ required }) => required.resource.url === resourceUrl) ??
      routes['execute/webhook'],
  };
}

/** As documents tell it: plain JSON. */
export function askedFor({ routes }: Asked): Readonly<Record<Route, AskedFor>> {
  const told = ({ required, discovery }: AskedRoute): AskedFor => {
    const { resource, accepts, extensions } = JSON.parse(
      JSON.stringify({
        resource: required.resource.url,
        accepts: required.accepts,
        extensions: discovery.extension,
      }),
    ) as { resource: string; accepts: JsonObject[]; extensions: JsonObject };
    return { resource, accepts, extensions };
  };
  return {
    'execute/webhook': told(routes['execute/webhook']),
    'execute/guided-webhook': told(routes['execute/guided-webhook']),
  };
}
