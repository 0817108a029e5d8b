// JSON Schemas in the form that generators of clients read: they accept the same values as TypeBox's form, of which several
// generators make empty classes (`anyOf` of `const`, `anyOf [X, null]`) or maps without a type (`patternProperties`).
type Schema = { readonly [keyword: string]: unknown };

/** Keywords whose value is a schema, a list of them, or a map of them. Everything else is no schema: examples, `enum`. */
const ONE = ['items', 'additionalProperties', 'not', 'propertyNames'];
const LISTS = ['anyOf', 'oneOf', 'allOf'];
const MAPS = ['properties', 'patternProperties', '$defs'];

type References = ReadonlyMap<unknown, object>;

/** The same schema, rewritten from the innermost part outwards. `references`: what stands for a schema that has a name. */
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

/** A union of simple types and of constants is one schema: `type` with `enum`. */
function withoutUnion(schema: Schema): Schema {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || 'type' in rest) return schema;
  const options = anyOf.filter(isSchema).flatMap(optionsOf);
  const types = [...new Set(options.flatMap(typesOf))];
  const values = options.map(valuesOf);
  if (options.every((option) => typesOf(option).length > 0)) {
    if (values.every((of) => of !== null)) return { ...rest, type: single(types), enum: values.flat() };
    if (options.every(isPlain)) return { ...rest, type: single(types) };
  }
  const [some, ...others] = options.filter((option) => !isNull(option));
  if (some === undefined || others.length > 0 || options.length !== 2) return schema;
  if (typesOf(some).length === 0)
    return '$ref' in some ? { ...rest, oneOf: [some, { type: 'null' }] } : schema;
  const nulled = valuesOf(some);
  const { const: _, ...kept } = some;
  return {
    ...kept,
    ...rest,
    type: [...typesOf(some), 'null'],
    ...(nulled === null ? {} : { enum: [...nulled, null] }),
  };
}

/** A union within a union that says nothing more is a part of it. */
function optionsOf(option: Schema): readonly Schema[] {
  const { anyOf, ...rest } = option;
  return Array.isArray(anyOf) && Object.keys(rest).length === 0 ? anyOf.filter(isSchema) : [option];
}

const typesOf = ({ type }: Schema): readonly unknown[] => (type === undefined ? [] : [type].flat());

const isNull = ({ type }: Schema): boolean => type === 'null';

/** All values that an option allows; null: not a list of them. */
function valuesOf(option: Schema): readonly unknown[] | null {
  const { type, const: only, enum: of, ...rest } = option;
  if (Object.keys(rest).length > 0) return null;
  if (only !== undefined) return [only];
  if (Array.isArray(of)) return of;
  if (type === 'null') return [null];
  return type === 'boolean' ? [true, false] : null;
}

/** A type without any rule for its values. */
const isPlain = (option: Schema): boolean => Object.keys(option).every((keyword) => keyword === 'type');

const single = (types: readonly unknown[]): unknown => (types.length === 1 ? types[0] : types);
