// What is published of a record.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from '@sinclair/typebox';
import { Closed, Nullable } from '#src/domain/schema-parts.ts';
import { shownBy } from '#src/http/response/shown.ts';

const Inner = Closed({ shown: Type.String(), absent: Type.Optional(Type.String()) });
const Outer = Closed({
  list: Type.Array(Inner),
  nullable: Nullable(Inner),
  none: Nullable(Inner),
  any: Type.Unknown(),
});

test('only members that the schema declares are published, at every depth', () => {
  const inner = { shown: 'a', secret: 'b' };
  const record = { list: [inner, inner], nullable: inner, none: null, any: { kept: 1 }, secret: 'c' };
  assert.deepEqual(shownBy(Outer)(record), {
    list: [{ shown: 'a' }, { shown: 'a' }],
    nullable: { shown: 'a' },
    none: null,
    any: { kept: 1 },
  });
});
