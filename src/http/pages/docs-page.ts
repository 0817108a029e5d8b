// The interface description as a page, built from the very document that the service publishes: operations by tag, with
// prices, parameters, bodies and answers, and each JSON Schema in the notation of TypeScript.
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

const NOTHING = markup``;

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
${description === summary ? NOTHING : markup`<p>${description}</p>`}${parameterList(parameters)}${request(requestBody?.content)}${answers(operation)}</article>`;
}

function price({ 'x-payment-info': paid }: DescribedOperation, isDemo: boolean): Markup {
  if (paid === undefined) return NOTHING;
  const { amount, currency } = paid.price;
  return markup`<span class="pill warn">${amount} ${currency}</span>${isDemo ? ' not charged in demo mode' : ''}`;
}

function parameterList(parameters: readonly Parameter[]): Markup {
  if (parameters.length === 0) return NOTHING;
  const lines = parameters.map(({ in: place, name, required = false, schema, description = '' }) =>
    memberOf(name, { ...schema, description: `in the ${place}. ${description}` }, required, ''),
  );
  return markup`<h4>Parameters</h4>${code(lines.join('\n'))}`;
}

function request(content: Content | undefined): Markup {
  const bodies = Object.entries(content ?? {}).map(body);
  return bodies.length === 0 ? NOTHING : markup`<h4>Request</h4>${bodies}`;
}

function body([mediaType, { schema, example = schema.examples?.[0] }]: [string, Content[string]]): Markup {
  const shown = example === undefined ? NOTHING : code(JSON.stringify(example, null, 2));
  return markup`<p class="note">${mediaType}</p>${code(shapeOf(schema))}${shown}`;
}

const code = (text: string): Markup => markup`<pre class="wrap"><code>${text}</code></pre>`;

function answers({ responses }: DescribedOperation): Markup {
  const failure = JSON.stringify(responses['500']?.content);
  const entries = Object.entries(responses).map(([status, { description, content = {} }]) => {
    const words = markup`<code>${status}</code> ${description}`;
    // What the errors have in common is shown once.
    const isCommon = JSON.stringify(content) === failure;
    const bodies = isCommon ? [] : Object.entries(content).map(body);
    return bodies.length === 0
      ? markup`<li>${words}</li>`
      : markup`<li>${words}<details><summary>Body</summary>${bodies}</details></li>`;
  });
  return markup`<h4>Answers</h4><ul class="answers">${entries}</ul>`;
}

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
  const note = [limits.join(', '), member.description ?? ''].filter((part) => part !== '').join('. ');
  const shape = shapeOf(member, indent);
  return `${indent}${name}${isRequired ? '' : '?'}: ${shape};${note === '' ? '' : ` // ${note}`}`;
}
