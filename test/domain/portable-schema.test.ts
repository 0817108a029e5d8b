// The form in which schemas are published: generators make types of it, and it accepts the same values as the enforced form.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type TSchema, Type } from '@sinclair/typebox';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { portableSchema } from '#src/domain/portable-schema.ts';
import { Nullable, OneOf } from '#src/domain/schema-parts.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { fakeWorld } from '#test/support/world/http-deps.ts';

const Text = Type.String({ maxLength: 2, description: 'Short.' });
const Named = Type.Object({ n: Type.Integer() });
const REF = { $ref: '#/components/schemas/Named' };
const references = new Map<unknown, object>([[Named, REF]]);

const SHAPES: readonly (readonly [title: string, TSchema, expected: object])[] = [
  ['texts are an enum', OneOf('a', 'b'), { type: 'string', enum: ['a', 'b'] }],
  [
    'texts or null are an enum with null',
    Nullable(OneOf('a', 'b')),
    { type: ['string', 'null'], enum: ['a', 'b', null] },
  ],
  ['a constant or null', Nullable(Type.Literal('a')), { type: ['string', 'null'], enum: ['a', null] }],
  [
    'a described constant or null',
    Nullable(Type.Literal('a', { description: 'A.' })),
    { type: ['string', 'null'], enum: ['a', null], description: 'A.' },
  ],
  [
    'a schema or null has two types and keeps its rules',
    Nullable(Text),
    { type: ['string', 'null'], maxLength: 2, description: 'Short.' },
  ],
  [
    'an object or null',
    Nullable(Type.Object({ a: Nullable(Type.Integer()) }, { additionalProperties: false })),
    {
      type: ['object', 'null'],
      additionalProperties: false,
      required: ['a'],
      properties: { a: { type: ['integer', 'null'] } },
    },
  ],
  [
    'simple types are one of them, a text first',
    Type.Union([Type.Number(), Type.String()]),
    { oneOf: [{ type: 'string' }, { type: 'number' }] },
  ],
  [
    'a union in a union is a part of it',
    Nullable(Type.Union([Type.String(), Type.Integer()])),
    { oneOf: [{ type: 'string' }, { type: 'integer' }, { type: 'null' }] },
  ],
  [
    'a truth value or a text',
    Type.Union([Type.Boolean(), Type.Literal('unknown')]),
    { oneOf: [{ const: 'unknown', type: 'string' }, { type: 'boolean' }] },
  ],
  [
    'the description of a union stays',
    Type.Union([Type.Literal('a'), Type.Literal('b')], { description: 'One.', default: 'a' }),
    { type: 'string', enum: ['a', 'b'], description: 'One.', default: 'a' },
  ],
  [
    'a map has additionalProperties',
    Type.Record(Type.String(), Nullable(Type.String())),
    { type: 'object', additionalProperties: { type: ['string', 'null'] } },
  ],
  ['a named schema is referred to', Type.Array(Named), { type: 'array', items: REF }],
  ['a named schema or null is one of both', Nullable(Named), { oneOf: [REF, { type: 'null' }] }],
];

const VALUES = [
  null,
  'a',
  'b',
  'abc',
  '',
  0,
  1,
  1.5,
  true,
  false,
  'unknown',
  [],
  {},
  { a: null },
  { a: 1 },
].concat([{ a: 'x' }, { a: 1, b: 2 }, { n: 1 }, { n: 'x' }, [{ n: 1 }], [{ n: null }]] as never[]);

for (const [title, schema, expected] of SHAPES)
  test(`${title}; the same values fit`, () => {
    const published = portableSchema(schema, references) as Record<string, unknown>;
    assert.deepEqual(published, expected);
    const ajv = new Ajv2020({ strict: false });
    const fits = ajv.compile({ ...published, components: { schemas: { Named } } });
    const enforced = ajv.compile(schema);
    for (const value of VALUES) assert.equal(fits(value), enforced(value), JSON.stringify(value));
  });

test('what has no such form is left as it is: unions of objects, and values that are no schemas', () => {
  const union = Type.Union([Type.Object({ a: Type.Literal(1) }), Type.Object({ a: Type.Literal(2) })]);
  assert.deepEqual(portableSchema(union), JSON.parse(JSON.stringify(union)));
  const overlapping = Type.Union([Type.Number({ minimum: 1 }), Type.Integer()]);
  assert.deepEqual(portableSchema(overlapping), JSON.parse(JSON.stringify(overlapping)));
  const data = { anyOf: [{ const: 1 }, { const: 2 }] };
  const of = {
    type: 'object',
    default: data,
    example: data,
    enum: [data],
    properties: { anyOf: { type: 'null' } },
  };
  assert.deepEqual(portableSchema(of), of);
});

test('the interface description has no schema that generators make nothing of', async () => {
  const { paths, components } = await clientOf(fakeWorld()).document();
  const text = JSON.stringify([paths, components]);
  assert.doesNotMatch(text, /"patternProperties"/);
  const unions = [...text.matchAll(/"anyOf":\[\{"(const|type":"null)/g)];
  assert.deepEqual(
    unions.map(([of]) => of),
    [],
  );
  const { headers } = (components.schemas.WebhookRequest as { properties: Record<string, object> })
    .properties;
  const { additionalProperties, description } = headers as Record<string, unknown>;
  assert.deepEqual(additionalProperties, {
    oneOf: [{ type: 'string' }, { type: 'number' }, { type: 'boolean' }],
  });
  assert.match(String(description), /64 headers.*token.*visible ASCII/s);
});

test('the example of a request is in its media type and beside its schema, where importers of requests read it', async () => {
  const { paths } = await clientOf(fakeWorld()).document();
  let examples = 0;
  for (const methods of Object.values(paths))
    for (const { requestBody, operationId } of Object.values(methods)) {
      const content = requestBody?.content['application/json'];
      if (content === undefined) continue;
      const { schema, example } = content as { schema: { example?: unknown }; example?: unknown };
      assert.ok(example !== undefined, operationId);
      assert.deepEqual(schema.example, example, operationId);
      examples += 1;
    }
  assert.ok(examples >= 6);
});
