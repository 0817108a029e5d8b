// The type of a document, and the parts that several documents share, each with its schema.
import { type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox';
import { SERVICE } from '#src/domain/limits.ts';
import { Closed, Instant, Link } from '#src/domain/schema-parts.ts';
import { type Facts, networkName, usd } from './facts.ts';
import { DOCUMENT_ROUTES, JSON_TYPE, pathTemplate, ROUTES, type RouteFacts } from './routes.ts';

export const Text = Type.String();
export const Texts = Type.Array(Text);
export const Path = Type.String({
  description: 'Path below the base address; `{id}` is replaced by an identifier.',
});

/** One JSON document: where it is served, its schema, and how it is built from the facts of a deployment. */
export type PublishedDocument<T = unknown> = {
  /** The first is the canonical address; the others serve the same bytes. */
  readonly routes: readonly [RouteFacts, ...RouteFacts[]];
  readonly schema: TSchema;
  readonly build: (facts: Facts) => T;
};

/** The members that every document begins with. */
const headingSchema = { ok: Type.Boolean(), service: Text, generatedAt: Instant };
type Heading = Static<TObject<typeof headingSchema>>;

type Members<P extends TProperties> = { [K in keyof P]: Static<P[K]> };

const headed = <T extends object>(facts: Facts, members: T): Heading & T => ({
  ok: true,
  service: SERVICE.name,
  generatedAt: facts.generatedAt,
  ...members,
});

/** A document of the specification. `members`, and what the function is given: without the heading. */
export const document =
  <P extends TProperties>(routes: PublishedDocument['routes'], members: P) =>
  (build: (facts: Facts) => Members<P>): PublishedDocument<Heading & Members<P>> => ({
    routes,
    schema: Closed({ ...headingSchema, ...members }),
    build: (facts) => headed(facts, build(facts)),
  });

/** A document whose members nothing specifies: it is described by its heading alone. */
export const openDocument = <T extends object>(
  routes: PublishedDocument['routes'],
  build: (facts: Facts) => T,
): PublishedDocument<Heading & T> => ({
  routes,
  schema: Type.Object(headingSchema),
  build: (facts) => headed(facts, build(facts)),
});

export const endpointSchema = {
  method: Text,
  path: Path,
  paid: Type.Boolean({ description: 'A paid route: charged where payment is enforced.' }),
};
export const endpointShown = ({ method, path, paid }: RouteFacts) => ({
  method,
  path: pathTemplate(path),
  paid,
});

/** The endpoint of an operation or tool, with its price if it is paid. */
export function priced({ offer }: Facts, route: RouteFacts) {
  return { ...endpointShown(route), ...(route.paid ? { price: offer.price } : {}) };
}

export const termsSchema = {
  required: Type.Boolean({ description: 'Whether payment is enforced now.' }),
  scheme: Text,
  network: Type.String({ description: 'CAIP-2.' }),
  networkName: Text,
  price: Type.String({ description: 'US dollars a call, as in $1.50.' }),
};
export const shownTerms = ({ mode, offer }: Facts) => ({
  required: mode === 'x402',
  scheme: offer.scheme,
  network: offer.network,
  networkName: networkName(offer.network),
  price: offer.price,
});

/** One or two sentences: whether a paid route is charged now, and the price of a call. */
export function chargeText({ offer, mode }: Facts): string {
  const terms = `${usd(offer)} USD by x402, scheme ${offer.scheme}, on ${networkName(offer.network)} (${offer.network})`;
  return mode === 'x402'
    ? `Payment is enforced: a call costs ${terms}.`
    : `Demo mode: payment is not enforced and no one is charged now. Where it is enforced, a call costs ${terms}.`;
}

/** Absolute address; a parameter is a template variable such as `{id}` (RFC 6570). */
export const addressOf = ({ baseUrl }: Pick<Facts, 'baseUrl'>, { path, query = '' }: RouteFacts): string =>
  `${baseUrl}${pathTemplate(path)}${query}`;

/** Method and path, as in `GET /api/jobs/{id}`. */
export const methodAndPath = ({ method, path }: RouteFacts): string => `${method} ${pathTemplate(path)}`;

/** The addresses that documents and answers link to. Each answers GET. */
const LINKED = {
  ...DOCUMENT_ROUTES,
  x402: ROUTES.x402Items,
  keys: ROUTES.jwks,
  verifier: ROUTES.verifierModule,
  verifierPackage: ROUTES.verifierPackage,
  verifierPython: ROUTES.verifierPython,
  trust: ROUTES.trust,
  monitoring: ROUTES.monitoring,
  recentProofs: ROUTES.recentProofs,
  recentDecisions: ROUTES.recentDecisions,
  health: ROUTES.health,
  docs: ROUTES.docsPage,
};

export const LinksShown = Type.Record(Type.String(), Link);

export const serviceLinks = (facts: Facts): Static<typeof LinksShown> =>
  Object.fromEntries(Object.entries(LINKED).map(([name, route]) => [name, addressOf(facts, route)]));

/** Value of the `Link` header (RFC 8288, RFC 8631, RFC 9727). `baseUrl`: without a trailing slash. */
export function linkHeader(baseUrl: string): string {
  return LINKS.map(([{ path }, rel, type]) => `<${baseUrl}${path}>; rel="${rel}"; type="${type}"`).join(', ');
}

const LINKS = [
  [ROUTES.apiCatalog, 'api-catalog', 'application/linkset+json'],
  [ROUTES.openapi, 'service-desc', JSON_TYPE],
  [ROUTES.docsPage, 'service-doc', 'text/html'],
  [ROUTES.statusPage, 'status', 'text/html'],
  [ROUTES.llms, 'describedby', 'text/plain'],
] as const;
