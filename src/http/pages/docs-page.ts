// The interface description as a page: operations by tag, with prices, parameters, bodies and answers, and each JSON Schema
// in the notation of TypeScript.
import type { TSchema } from '@sinclair/typebox';
import { methodAndPath } from '#src/discovery/document.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { JSON_TYPE, OPERATIONS, pathTemplate, ROUTES, TAGS } from '#src/discovery/routes.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { type Endpoint, endpoint, type Operation } from '#src/http/endpoint.ts';
import { errorsOf, parametersOf, UNPAID } from '#src/http/openapi.ts';
import { publisher } from '#src/http/response/conditional-get.ts';
import { ChallengeBody } from '#src/http/response/errors.ts';
import { ASK_AGAIN, type Markup, markup, pagesFrom } from './page.ts';

export function docsPageRoutes(
  facts: Facts,
  { verifyScript }: { readonly verifyScript: string },
  endpoints: () => readonly Endpoint[],
): Endpoint[] {
  const page = () => ({
    title: `${SERVICE.name}: interface`,
    description: `Every operation of ${SERVICE.name}: parameters, bodies, answers and prices.`,
    path: ROUTES.docsPage.path,
    wide: true,
    scripted: true,
    content: contentOf(endpoints(), facts.mode === 'demo'),
  });
  const published = pagesFrom(facts.baseUrl, verifyScript).published(publisher(facts), page, ASK_AGAIN);
  return [endpoint(ROUTES.docsPage, null, published)];
}

type Listed = { readonly id: string; readonly route: Endpoint['route']; readonly operation: Operation };

function contentOf(endpoints: readonly Endpoint[], isDemo: boolean): Markup {
  const listed = OPERATIONS.flatMap(([id, route]) => {
    const operation = endpoints.find((one) => methodAndPath(one.route) === methodAndPath(route))?.operation;
    return operation ? [{ id, route, operation }] : [];
  });
  const byTag = Object.keys(TAGS).map(
    (tag) => [tag, listed.filter(({ route }) => route.tag === tag)] as const,
  );
  return markup`<h1>Interface</h1>
<p class="lead">Every operation, as in the OpenAPI description that machines read: <a href="${ROUTES.openapi.path}">${ROUTES.openapi.path}</a>.</p>
<p>Bodies are JSON, closed unless they say otherwise: an unknown member is refused. An operation is free unless it has a price. ${
    isDemo
      ? 'This deployment runs in demo mode and charges no one; prices apply where payment is enforced.'
      : markup`A paid operation answers 402 with its terms; <a href="${ROUTES.pricing.path}">pricing</a> says when it is charged.`
  } Errors have one body, shown <a href="#errors">at the end</a>; a 402 has x402’s, and <code>${ROUTES.mcp.path}</code> answers in JSON-RPC.</p>
<p id="filter-field" hidden><label for="filter">Filter</label><input type="search" id="filter" autocomplete="off" aria-describedby="filter-state"><span class="note" id="filter-state" role="status"></span></p>
<div class="docs"><nav class="contents" aria-label="Operations">${byTag.map(([tag, of]) => contents(tag, of))}</nav>
<div>${byTag.map(([tag, of]) => section(tag, of, isDemo))}${errors}</div></div>`;
}

const titleOf = (tag: string) => tag.charAt(0).toUpperCase() + tag.slice(1);

const contents = (tag: string, listed: readonly Listed[]) =>
  markup`<p><a href="#tag-${tag}">${titleOf(tag)}</a></p><ul>${listed.map(({ id, route }) => markup`<li><a href="#op-${id}">${route.summary}</a></li>`)}</ul>`;

const section = (tag: string, listed: readonly Listed[], isDemo: boolean) =>
  markup`<section><h2 id="tag-${tag}">${titleOf(tag)}</h2>${listed.map((one) => article(one, isDemo))}</section>`;

const errors = markup`<section><h2 id="errors">Errors</h2>
<p>Refusals and failures have this body, except a 402 (x402’s body), a 502 (the execution response) and <code>${ROUTES.mcp.path}</code> (JSON-RPC). <code>code</code> is for programs and is stable; <code>message</code> is for people and may change; <code>details</code> is optional. <a href="${ROUTES.errors.path}">${ROUTES.errors.path}</a> has every code: its meaning, whether the call is charged, and what to do.</p>
<pre tabindex="0" role="region" aria-label="Body of an error"><code>${JSON.stringify({ error: { code: 'invalid_request', message: 'What is wrong.', details: {} } }, null, 2)}</code></pre></section>`;

const NOTHING = markup``;

function article({ id, route, operation }: Listed, isDemo: boolean): Markup {
  const { method, path, summary, description } = route;
  return markup`<article class="operation" data-operation="op-${id}"><h3 id="op-${id}">${summary}</h3>
<p class="address"><span class="method">${method}</span> <code>${pathTemplate(path)}</code> ${price(operation, isDemo)}</p>
${description === summary ? NOTHING : markup`<p>${withCode(description)}</p>`}<details><summary>Request and answers</summary>${parameters(path, operation)}${request(operation)}${answers(operation)}</details></article>`;
}

/** What stands between backticks is code. */
const withCode = (text: string): Markup =>
  markup`${text.split('`').map((part, i) => (i % 2 === 0 ? markup`${part}` : markup`<code>${part}</code>`))}`;

function price({ paidUsd }: Operation, isDemo: boolean): Markup {
  if (paidUsd === undefined) return NOTHING;
  return markup`<span class="pill warn">${paidUsd} USD</span>${isDemo ? ' not charged in demo mode' : ''}`;
}

function parameters(path: string, operation: Operation): Markup {
  const lines = parametersOf(path, operation).map(({ in: place, name, required, schema, description }) =>
    memberOf(name, { ...schema, description: `in the ${place}. ${description}` }, required, ''),
  );
  return lines.length === 0 ? NOTHING : markup`<h4>Parameters</h4>${code(lines.join('\n'))}`;
}

function request({ body, example }: Operation): Markup {
  if (body === undefined) return NOTHING;
  const shown =
    example === undefined
      ? NOTHING
      : markup`<pre class="wrap" data-copy><code>${JSON.stringify(example, null, 2)}</code></pre>`;
  return markup`<h4>Request</h4>${bodyOf(body)}${shown}`;
}

const bodyOf = (body: TSchema | string) =>
  typeof body === 'string'
    ? markup`<p class="note">${withCode(body)}</p>`
    : markup`<p class="note">${JSON_TYPE}</p>${code(shapeOf(body))}`;

const code = (text: string): Markup => markup`<pre class="wrap"><code>${text}</code></pre>`;

function answers(operation: Operation): Markup {
  const unpaid = operation.paidUsd === undefined ? {} : { 402: [UNPAID, ChallengeBody] as const };
  const failures = Object.entries(errorsOf(operation)).map(
    ([status, text]) => [status, [text, null]] as const,
  );
  // By status, as numbers are ordered among the names of an object.
  const all: Operation['answers'] = { ...operation.answers, ...unpaid, ...Object.fromEntries(failures) };
  const entries = Object.entries(all).map(([status, [text, body]]) => {
    const shown = body === null ? NOTHING : markup`<details><summary>Body</summary>${bodyOf(body)}</details>`;
    return markup`<li><code>${status}</code> ${withCode(text)}${shown}</li>`;
  });
  return markup`<h4>Answers</h4><ul class="answers">${entries}</ul>`;
}

type Schema = Partial<TSchema>;

/** In the notation of TypeScript; limits and descriptions are comments. */
export function shapeOf(schema: Schema, indent = ''): string {
  const { properties, required = [], items, anyOf, oneOf, patternProperties = {}, type } = schema;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const options: readonly Schema[] | undefined = anyOf ?? oneOf;
  const literals: readonly unknown[] | undefined = schema.enum;
  const choices =
    literals?.map((value) => JSON.stringify(value)) ?? options?.map((option) => shapeOf(option, indent));
  if (choices !== undefined) return [...new Set(choices)].join(' | ');
  if (type === 'array') return `Array<${shapeOf(items ?? {}, indent)}>`;
  if (properties !== undefined && Object.keys(properties).length > 0) {
    const members = Object.entries<Schema>(properties).map(([name, member]) =>
      memberOf(name, member, required.includes(name), `${indent}  `),
    );
    return `{\n${members.join('\n')}\n${indent}}`;
  }
  if (type !== 'object') return [type ?? 'unknown'].flat().join(' | ');
  const [values] = [...Object.values<Schema>(patternProperties), schema.additionalProperties];
  return typeof values === 'object' ? `Record<string, ${shapeOf(values, indent)}>` : 'object';
}

const LIMITING = [
  'format',
  'pattern',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'default',
] as const;

function memberOf(name: string, member: Schema, isRequired: boolean, indent: string): string {
  const limits = LIMITING.filter((limit) => member[limit] !== undefined).map(
    (limit) => `${limit} ${JSON.stringify(member[limit])}`,
  );
  const note = [limits.join(', '), member.description?.replaceAll('`', '') ?? '']
    .filter((part) => part !== '')
    .join('. ');
  const shape = shapeOf(member, indent);
  return `${indent}${name}${isRequired ? '' : '?'}: ${shape};${note === '' ? '' : ` // ${note}`}`;
}
