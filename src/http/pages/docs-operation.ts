// One operation of the interface description, for people: price, parameters, request, answers by status.
import { type DescribedSchema, jsonExample, limitsOf, schemaList, typeOf } from './docs-schema.ts';
import { type Markup, markup } from './markup.ts';

type Content = Readonly<Record<string, { readonly schema: DescribedSchema; readonly example?: unknown }>>;

type Answer = { readonly description: string; readonly content?: Content };

/** An operation object of OpenAPI 3.1, so far as the page shows it. */
export type DescribedOperation = {
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
  readonly schema: DescribedSchema;
  readonly description?: string;
};

export const anchorOf = ({ operationId }: DescribedOperation) => `op-${operationId}`;

export function operationSection(
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
