// The interface description as a page, built from the very document that the service publishes: operations by tag, with
// prices, parameters, bodies and answers, and each JSON Schema as an indented list.
import type { TSchema } from '@sinclair/typebox';
import type { Facts } from '#src/discovery/facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { publisher } from '#src/http/response/conditional-get.ts';
import { CACHE_SHORTLY } from '#src/http/response/json.ts';
import { type Markup, markup } from './markup.ts';
import { pagesFrom } from './page.ts';

/** The OpenAPI document, as far as the page shows it. */
type InterfaceDocument = {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
};

type Operation = { readonly method: string; readonly path: string; readonly is: DescribedOperation };

/** `description`: the interface description as it is served. */
export function docsPageRoutes(facts: Facts, description: () => string): Endpoint[] {
  const page = () => ({
    title: `${SERVICE.name}: interface`,
    description: `Every operation of ${SERVICE.name}: parameters, bodies, answers and prices.`,
    path: ROUTES.docsPage.path,
    wide: true,
    content: contentOf(JSON.parse(description()), facts.mode === 'demo'),
  });
  const published = pagesFrom(facts.baseUrl).published(publisher(facts), page, CACHE_SHORTLY);
  return [endpoint(ROUTES.docsPage, null, published)];
}

function contentOf({ openapi, paths }: InterfaceDocument, isDemo: boolean): Markup {
  const byTag = groupedByTag(paths);
  return markup`<h1>Interface</h1>
<p class="lead">Every operation, rendered from the OpenAPI ${openapi} description that machines read: <a href="${ROUTES.openapi.path}">${ROUTES.openapi.path}</a>.</p>
<p>Bodies are JSON, closed unless they say otherwise: an unknown member is refused. An operation is free unless it has a price. ${
    isDemo
      ? 'This deployment runs in demo mode and charges no one; prices apply where payment is enforced.'
      : markup`A paid operation answers 402 with its terms; <a href="${ROUTES.pricing.path}">pricing</a> says when it is charged.`
  } Every error has the same body, shown <a href="#errors">at the end</a>.</p>
<div class="docs"><nav class="contents" aria-label="Operations">${[...byTag].map(contents)}</nav>
<div>${[...byTag].map(([tag, operations]) => section(tag, operations, isDemo))}${errors}</div></div>`;
}

function groupedByTag(paths: InterfaceDocument['paths']): ReadonlyMap<string, readonly Operation[]> {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, is]) => ({ method: method.toUpperCase(), path, is })),
  );
  const tags = new Set(operations.flatMap(({ is }) => is.tags));
  return new Map([...tags].map((tag) => [tag, operations.filter(({ is }) => is.tags.includes(tag))]));
}

const titleOf = (tag: string) => tag.charAt(0).toUpperCase() + tag.slice(1);

function contents([tag, operations]: readonly [string, readonly Operation[]]): Markup {
  const items = operations.map(({ method, path, is }) => {
    const isOnly = operations.filter((other) => other.is.summary === is.summary).length === 1;
    return markup`<li><a href="#${anchorOf(is)}">${is.summary}${isOnly ? '' : ` (${method} ${path})`}</a></li>`;
  });
  return markup`<p><a href="#tag-${tag}">${titleOf(tag)}</a></p><ul>${items}</ul>`;
}

function section(tag: string, operations: readonly Operation[], isDemo: boolean): Markup {
  const sections = operations.map(({ method, path, is }) => operationSection(method, path, is, isDemo));
  return markup`<section><h2 id="tag-${tag}">${titleOf(tag)}</h2>${sections}</section>`;
}

const errors = markup`<section><h2 id="errors">Errors</h2>
<p>Every refusal and failure has this body. <code>code</code> is for programs and is stable; <code>message</code> is for people and may change; <code>details</code> is optional.</p>
<pre tabindex="0" role="region" aria-label="Body of an error"><code>${JSON.stringify({ error: { code: 'invalid_request', message: 'What is wrong.', details: {} } }, null, 2)}</code></pre></section>`;

/** JSON Schema 2020-12. */
type Schema = Partial<TSchema>;

type Content = Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>;

type Answer = { readonly description: string; readonly content?: Content };

/** An operation object of OpenAPI 3.1, so far as the page shows it. */
type DescribedOperation = {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, Answer>>;
  readonly 'x-payment-info'?: { readonly price: { readonly amount: string; readonly currency: string } };
};

type Parameter = {
  readonly in: string;
  readonly name: string;
  readonly required?: boolean;
  readonly schema: Schema;
  readonly description?: string;
};

const anchorOf = ({ operationId }: DescribedOperation) => `op-${operationId}`;

function operationSection(
  method: string,
  path: string,
  operation: DescribedOperation,
  isDemo: boolean,
): Markup {
  const { summary, description, parameters = [], requestBody } = operation;
  return markup`<article class="operation"><h3 id="${anchorOf(operation)}">${summary}</h3>
<p class="address"><span class="method">${method}</span> <code>${path}</code> ${price(operation, isDemo)}</p>
<p>${description}</p>${parameterList(parameters)}${request(requestBody?.content)}${answers(operation)}</article>`;
}

function price({ 'x-payment-info': paid }: DescribedOperation, isDemo: boolean): Markup {
  if (paid === undefined) return markup``;
  const { amount, currency } = paid.price;
  return markup`<span class="pill warn">${amount} ${currency}</span>${isDemo ? ' not charged in demo mode' : ''}`;
}

function parameterList(parameters: readonly Parameter[]): Markup {
  if (parameters.length === 0) return markup``;
  const items = parameters.map(
    ({ in: place, name, required = false, schema, description = '' }) =>
      markup`<li><code class="name">${name}</code> <span class="type">${typeOf(schema)}, in the ${place}${required ? ', required' : ''}${limitsOf(schema)}</span> ${description}</li>`,
  );
  return markup`<h4>Parameters</h4><ul class="schema">${items}</ul>`;
}

function request(content: Content | undefined): Markup {
  const entries = Object.entries(content ?? {});
  if (entries.length === 0) return markup``;
  const bodies = entries.map(
    ([mediaType, { schema, example = schema.examples?.[0] }]) =>
      markup`${mediaType === 'application/json' ? '' : markup`<p><code>${mediaType}</code></p>`}${schemaList(schema)}${jsonExample(example)}`,
  );
  return markup`<h4>Request</h4>${bodies}`;
}

function answers({ responses }: DescribedOperation): Markup {
  const failure = bodyText(responses['500']);
  const entries = Object.entries(responses).map(([status, answer]) => {
    const { description, content = {} } = answer;
    const words = markup`<code>${status}</code> ${description}`;
    return bodyText(answer) === failure || Object.keys(content).length === 0
      ? markup`<li>${words}</li>`
      : markup`<li>${words}${Object.entries(content).map(answerBody)}</li>`;
  });
  return markup`<h4>Answers</h4><ul class="answers">${entries}</ul>`;
}

/** What the errors have in common. */
const bodyText = (answer: Answer | undefined) => JSON.stringify(answer?.content);

function answerBody([mediaType, { schema, example = schema.examples?.[0] }]: [
  string,
  Content[string],
]): Markup {
  const members = schemaList(schema);
  if (members.markup === '') return markup` <span class="type">${mediaType}</span>`;
  return markup`<details><summary>Body</summary>${members}${jsonExample(example)}</details>`;
}

/** The members of an object, or of the objects within it; empty where there are none. */
export function schemaList(schema: Schema): Markup {
  const { properties = {}, required = [] } = schema;
  const names = Object.keys(properties);
  if (names.length > 0) {
    const items = Object.entries<Schema>(properties).map(([name, member]) =>
      memberItem(name, member, required.includes(name)),
    );
    return markup`<ul class="schema">${items}</ul>`;
  }
  const within = [...alternatives(schema), ...valuesOf(schema)].filter(({ type }) => type !== 'null');
  return markup`${within.map(schemaList)}`;
}

function memberItem(name: string, schema: Schema, isRequired: boolean): Markup {
  const { description = '' } = schema;
  return markup`<li><code class="name">${name}</code> <span class="type">${typeOf(schema)}${isRequired ? ', required' : ''}${limitsOf(schema)}</span> ${description}${schemaList(schema)}</li>`;
}

const alternatives = ({ anyOf, oneOf }: Schema): readonly Schema[] => anyOf ?? oneOf ?? [];

/** Schemas of what an array or a map holds. */
function valuesOf({ items, patternProperties = {}, additionalProperties }: Schema): readonly Schema[] {
  const further = typeof additionalProperties === 'object' ? [additionalProperties] : [];
  return [...(items === undefined ? [] : [items]), ...Object.values<Schema>(patternProperties), ...further];
}

/** In words: `string`, `"POST" or "PUT"`, `array of string`, `number or null`. */
export function typeOf(schema: Schema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return orList(schema.enum.map((value: unknown) => JSON.stringify(value)));
  const options = alternatives(schema);
  if (options.length > 0) return orList([...new Set(options.map(typeOf))]);
  const [value] = valuesOf(schema);
  if (schema.type === 'array') return value === undefined ? 'array' : `array of ${typeOf(value)}`;
  if (schema.type === 'object') return value === undefined ? 'object' : `object of ${typeOf(value)}`;
  if (schema.type === undefined) return 'any JSON';
  return typeof schema.type === 'string' ? schema.type : orList(schema.type);
}

function orList(words: readonly string[]): string {
  const last = words.at(-1) ?? '';
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} or ${last}`;
}

/** Each begins with a comma: they follow the type. */
export function limitsOf(schema: Schema): string {
  const { format, pattern, minimum, maximum, minLength, maxLength, minItems, maxItems } = schema;
  const limits = [
    span(minimum, maximum, ''),
    span(minLength, maxLength, ' characters'),
    span(minItems, maxItems, ' items'),
    format,
    pattern === undefined ? undefined : `matches ${pattern}`,
    schema.default === undefined ? undefined : `default ${JSON.stringify(schema.default)}`,
  ];
  return limits.map((limit) => (limit === undefined ? '' : `, ${limit}`)).join('');
}

function span(least: number | undefined, most: number | undefined, unit: string): string | undefined {
  if (least === undefined && most === undefined) return undefined;
  if (most === undefined) return `at least ${least}${unit}`;
  return least === undefined ? `at most ${most}${unit}` : `${least} to ${most}${unit}`;
}

/** Nothing where there is no example. */
function jsonExample(example: unknown): Markup {
  if (example === undefined) return markup``;
  return markup`<p class="note">Example</p><pre class="wrap"><code>${JSON.stringify(example, null, 2)}</code></pre>`;
}
