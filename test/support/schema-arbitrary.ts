// Values that a JSON schema allows, and values that it nearly allows: for the keywords that our documents use.
import fc from 'fast-check';

export type JsonSchema = {
  readonly type?: string;
  readonly const?: unknown;
  readonly anyOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly format?: string;
  readonly pattern?: string;
};

/** `strings`: what to take for a string with a format or a pattern. */
export type Options = { readonly strings: fc.Arbitrary<string> };

/** Mostly allowed; now and then a part is anything, is left out, or has a stranger beside it. */
export function nearly(schema: JsonSchema, options: Options): fc.Arbitrary<unknown> {
  const { properties, required = [] } = schema;
  if (properties === undefined) {
    return fc.oneof({ arbitrary: allowed(schema, options), weight: 9 }, { arbitrary: anyJson, weight: 1 });
  }
  const parts = Object.fromEntries(
    Object.entries(properties).map(([name, part]) => [name, nearly(part, options)]),
  );
  const record = fc.record(parts, { requiredKeys: [...required] });
  const strange = fc
    .tuple(record, fc.string(), anyJson)
    .map(([value, name, more]) => ({ ...value, [name]: more }));
  return fc.oneof(
    { arbitrary: record, weight: 12 },
    { arbitrary: fc.record(parts, { requiredKeys: [] }), weight: 2 },
    { arbitrary: strange, weight: 2 },
    { arbitrary: anyJson, weight: 1 },
  );
}

const anyJson = fc.jsonValue({ maxDepth: 3 });

function allowed(schema: JsonSchema, options: Options): fc.Arbitrary<unknown> {
  if ('const' in schema) return fc.constant(schema.const);
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((one) => allowed(one, options)));
  const { minimum: min = -1e9, maximum: max = 1e9, minLength = 0, maxLength = 300 } = schema;
  switch (schema.type) {
    case 'string':
      if (schema.format !== undefined || schema.pattern !== undefined) return options.strings;
      return fc.string({ minLength, maxLength, unit: 'grapheme' }).filter((text) => text.length <= maxLength);
    case 'integer':
      return fc.integer({ min, max });
    case 'number':
      return fc.double({ min, max, noNaN: true });
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(allowed(schema.items ?? {}, options), { maxLength: 5 });
    case 'object': {
      const [values = {}] = Object.values(schema.patternProperties ?? {});
      if (schema.properties === undefined)
        return fc.dictionary(headerName, allowed(values, options), { maxKeys: 6 });
      return nearly(schema, options);
    }
    default:
      return anyJson;
  }
}

/** The one dictionary that a request has. */
const headerName = fc.oneof(
  fc.stringMatching(/^[a-z][a-z-]{0,12}$/),
  fc.constantFrom(
    'connection',
    'host',
    'Via',
    'webhook-id',
    'content-type',
    '__proto__',
    'x-payment',
    'cookie',
  ),
  fc.string({ maxLength: 10 }),
);
