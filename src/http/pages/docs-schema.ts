// A JSON Schema for people: an indented list of members with type, limits, default and meaning.
import { type Markup, markup } from './markup.ts';

/** JSON Schema 2020-12, so far as the service's own schemas use it. */
export type DescribedSchema = {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly DescribedSchema[];
  readonly oneOf?: readonly DescribedSchema[];
  readonly properties?: Readonly<Record<string, DescribedSchema>>;
  readonly required?: readonly string[];
  readonly patternProperties?: Readonly<Record<string, DescribedSchema>>;
  readonly additionalProperties?: boolean | DescribedSchema;
  readonly items?: DescribedSchema;
  readonly description?: string;
  readonly default?: unknown;
  readonly format?: string;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly examples?: readonly unknown[];
};

/** The members of an object, or of the objects within it; empty where there are none. */
export function schemaList(schema: DescribedSchema): Markup {
  const { properties = {}, required = [] } = schema;
  const names = Object.keys(properties);
  if (names.length > 0) {
    const items = Object.entries(properties).map(([name, member]) =>
      memberItem(name, member, required.includes(name)),
    );
    return markup`<ul class="schema">${items}</ul>`;
  }
  const within = [...alternatives(schema), ...valuesOf(schema)].filter(({ type }) => type !== 'null');
  return markup`${within.map(schemaList)}`;
}

function memberItem(name: string, schema: DescribedSchema, isRequired: boolean): Markup {
  const { description = '' } = schema;
  return markup`<li><code class="name">${name}</code> <span class="type">${typeOf(schema)}${isRequired ? ', required' : ''}${limitsOf(schema)}</span> ${description}${schemaList(schema)}</li>`;
}

const alternatives = ({ anyOf, oneOf }: DescribedSchema) => anyOf ?? oneOf ?? [];

/** Schemas of what an array or a map holds. */
function valuesOf({ items, patternProperties = {}, additionalProperties }: DescribedSchema) {
  const further = typeof additionalProperties === 'object' ? [additionalProperties] : [];
  return [...(items === undefined ? [] : [items]), ...Object.values(patternProperties), ...further];
}

/** In words: `string`, `"POST" or "PUT"`, `array of string`, `number or null`. */
export function typeOf(schema: DescribedSchema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return orList(schema.enum.map((value) => JSON.stringify(value)));
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
export function limitsOf(schema: DescribedSchema): string {
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
export function jsonExample(example: unknown): Markup {
  if (example === undefined) return markup``;
  return markup`<p class="note">Example</p><pre class="wrap"><code>${JSON.stringify(example, null, 2)}</code></pre>`;
}
