// The lists of the newest records, redacted: what they leave out is said in the answer itself.
import { type TSchema, Type } from '@sinclair/typebox';
import type { RouteFacts } from '#src/discovery/routes.ts';
import { Closed } from '#src/domain/schema-parts.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { readInteger } from '#src/http/request/validation.ts';
import { jsonText } from '#src/http/response/json.ts';
import { figure, type Moment } from '#src/http/response/response-cache.ts';

export const RedactionPolicy = Closed({ summary: Type.String(), redactedFields: Type.Array(Type.String()) });
export type RedactionPolicy = typeof RedactionPolicy.static;

type List = {
  /** The member of the answer that holds them. */
  readonly name: string;
  readonly schema: TSchema;
  readonly limits: { readonly min: number; readonly max: number; readonly default: number };
  readonly redactionPolicy: RedactionPolicy;
  /** The newest, newest first, as they are shown. */
  find(count: number): Promise<readonly object[]>;
};

/** The answer for every length is made of one list, which is computed once. */
export function recentEndpoint(
  deps: Moment,
  route: RouteFacts,
  { name, schema, limits, redactionPolicy, find }: List,
): Endpoint {
  const query = { name: 'limit', ...limits, description: 'How many, newest first.' };
  const body = Closed({
    ok: Type.Boolean(),
    redactionPolicy: RedactionPolicy,
    [name]: Type.Array(schema),
  });
  const begin = `${JSON.stringify({ ok: true, redactionPolicy }).slice(0, -1)},${JSON.stringify(name)}:[`;
  const items = figure(deps, async (_: 'items') =>
    (await find(limits.max)).map((item) => JSON.stringify(item)),
  );
  const operation = {
    query,
    answers: { 200: ['The summaries.', body] },
    errors: { 400: 'limit is out of bounds.', 503: 'The read models are unavailable.' },
  } as const;
  return endpoint(route, operation, async ({ request }) => {
    const wanted = readInteger(request.url, query);
    if (typeof wanted !== 'number') return wanted;
    return jsonText(`${begin}${(await items('items')).slice(0, wanted).join(',')}]}`);
  });
}
