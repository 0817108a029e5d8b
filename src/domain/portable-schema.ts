// JSON Schemas in the form that generators of clients read: they accept the same values as TypeBox's form, of which several
// generators make empty classes (`anyOf` of `const`, `anyOf [X, null]`) or maps without a type (`patternProperties`).
type Schema = { readonly [keyword: string]: unknown };

/** Keywords whose value is a schema, a list of them, or a map of them. Everything else is no schema: examples, `enum`. */
const ONE = ['items', 'additionalProperties', 'not', 'propertyNames'];
const LISTS = ['anyOf', 'oneOf', 'allOf'];
const MAPS = ['properties', 'patternProperties', '$defs'];

type References = ReadonlyMap<unknown, object>;

/** The same schema, rewritten from the innermost part outwards. `references`: the reference in place of each schema that has a name. */
export function portableSchema(schema: object, references: References = new Map()): object {
  const reference = references.get(schema);
  if (reference !== undefined) return reference;
  const inner = Object.entries(schema).map(([keyword, value]) => [
    keyword,
    innerOf(keyword, value, references),
  ]);
  return withoutUnion(withoutPatterns(Object.fromEntries(inner)));
}

function innerOf(keyword: string, value: unknown, references: References): unknown {
  const portable = (of: unknown) => (isSchema(of) ? portableSchema(of, references) : of);
  if (ONE.includes(keyword)) return portable(value);
  if (LISTS.includes(keyword) && Array.isArray(value)) return value.map(portable);
  if (MAPS.includes(keyword) && isSchema(value))
    return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, portable(of)]));
  return value;
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A map of any names: its values are `additionalProperties`. */
function withoutPatterns(schema: Schema): Schema {
  const { patternProperties, ...rest } = schema;
  if (!isSchema(patternProperties) || 'additionalProperties' in rest) return schema;
  const [pattern, ...others] = Object.entries(patternProperties);
  if (pattern === undefined || pattern[0] !== ANY_NAME || others.length > 0) return schema;
  return { ...rest, additionalProperties: pattern[1] };
}

/** As TypeBox writes a key of any text. */
const ANY_NAME = '^(.*)$';

/** A union of constants is an `enum`, one with null a second `type`, one of other types a `oneOf`. */
function withoutUnion(schema: Schema): Schema {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || 'type' in rest) return schema;
  const options = anyOf.filter(isSchema).flatMap(optionsOf);
  const others = options.filter(({ type }) => type !== 'null');
  const nullable = others.length < options.length;
  const [first, ...more] = others;
  if (first === undefined) return schema;
  if (more.length === 0 && '$ref' in first) return { ...rest, oneOf: options };
  const types = others.map(({ type }) => type);
  if (!types.every((type) => typeof type === 'string')) return schema;
  const type = nullable ? [types[0], 'null'] : types[0];
  const nothing = nullable ? [null] : [];
  const values = others.map(valuesOf);
  if (new Set(types).size === 1 && values.every((of) => of !== null))
    return { ...rest, type, enum: [...values.flat(), ...nothing] };
  if (more.length > 0) return areDisjoint(types) ? { ...rest, oneOf: [...options].sort(textFirst) } : schema;
  const { const: only, enum: allowed, ...kept } = first;
  const limited = only === undefined ? allowed : [only];
  return { ...kept, ...rest, type, ...(Array.isArray(limited) && { enum: [...limited, ...nothing] }) };
}

function areDisjoint(types: readonly string[]): boolean {
  const kinds = types.map((type) => (type === 'integer' ? 'number' : type));
  return new Set(kinds).size === kinds.length;
}

/** NSwag takes the first option, and every simple value can be read into a text. */
const textFirst = (a: Schema, b: Schema): number => Number(b.type === 'string') - Number(a.type === 'string');

/** A union within a union that says nothing more is a part of it. */
function optionsOf(option: Schema): readonly Schema[] {
  const { anyOf, oneOf = anyOf, ...rest } = option;
  return Array.isArray(oneOf) && Object.keys(rest).length === 0 ? oneOf.filter(isSchema) : [option];
}

/** All values that an option without further rules allows; null: not a list of them. */
function valuesOf({ type: _, const: only, enum: values, ...rest }: Schema): readonly unknown[] | null {
  if (Object.keys(rest).length > 0) return null;
  if (only !== undefined) return [only];
  return Array.isArray(values) ? values : null;
}
