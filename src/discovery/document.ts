// The type of a document, and the parts that several documents share, each with its schema.
import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { SERVICE } from '#src/domain/limits.ts';
import { Instant } from '#src/domain/schema-parts.ts';
import { type Facts, networkName, usd } from './facts.ts';
import { pathTemplate, type RouteFacts } from './routes.ts';

/** One JSON document: where it is served, its schema, and how it is built from the facts of a deployment. */
export type Document<S extends TSchema = TSchema> = {
  /** The first is the canonical address; the others serve the same bytes. */
  readonly routes: readonly RouteFacts[];
  /** Description of the answer in the interface description. */
  readonly answer: string;
  readonly schema: S;
  readonly build: (facts: Facts) => Static<S>;
};

export const JSON_TYPE = 'application/json';
export const TEXT_TYPE = 'text/plain; charset=utf-8';
export const HTML_TYPE = 'text/html; charset=utf-8';
export const TILE_TYPE = 'application/octet-stream';
/** With the profile of RFC 9727 §7.3. */
export const LINKSET_TYPE = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"';
export const SVG_TYPE = 'image/svg+xml';
export const ICO_TYPE = 'image/vnd.microsoft.icon';

export const Text = Type.String();
export const Texts = Type.Array(Text);
export const Path = Type.String({
  description: 'Path below the base address; `{id}` is replaced by an identifier.',
});

/** The members that every document begins with. */
export const headingSchema = { ok: Type.Boolean(), service: Text, generatedAt: Instant };
export const heading = ({ generatedAt }: Facts) => ({ ok: true, service: SERVICE.name, generatedAt });

export const endpointSchema = {
  method: Text,
  path: Path,
  paid: Type.Boolean({ description: 'A paid route: charged where payment is enforced.' }),
};
export const endpoint = ({ method, path, paid }: RouteFacts) => ({ method, path: pathTemplate(path), paid });

export const termsSchema = {
  required: Type.Boolean({ description: 'Whether payment is enforced now.' }),
  scheme: Text,
  network: Type.String({ description: 'CAIP-2.' }),
  networkName: Text,
  price: Type.String({ description: 'US dollars a call, as in $1.50.' }),
};
export const paymentTerms = ({ mode, offer }: Facts) => ({
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
export const addressOf = ({ baseUrl }: Pick<Facts, 'baseUrl'>, { path }: RouteFacts): string =>
  `${baseUrl}${pathTemplate(path)}`;

/** Method and path, as in `GET /api/jobs/{id}`. */
export const methodAndPath = ({ method, path }: RouteFacts): string => `${method} ${pathTemplate(path)}`;

/** Whether the canary can be the target of an execution: targets are https. */
export const isOwnTarget = ({ baseUrl }: Pick<Facts, 'baseUrl'>): boolean => baseUrl.startsWith('https://');
