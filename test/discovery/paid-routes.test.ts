// The published facts of the paid routes, compared with the schemas that they enforce.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Value } from '@sinclair/typebox/value';
import { PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import '#src/http/request/validation.ts';

for (const [route, facts] of Object.entries(PAID_ROUTES)) {
  test(`paid routes: ${route}: the example fits the schema that the route enforces`, () => {
    assert.deepEqual([...Value.Errors(facts.inputSchema, facts.inputExample)], []);
    assert.equal(Value.Check(facts.inputSchema, { ...facts.inputExample, surprise: 1 }), false);
  });

  test(`paid routes: ${route}: the description is short enough for a catalog`, () => {
    assert.ok(
      facts.description.length > 40 && facts.description.length <= 450,
      String(facts.description.length),
    );
  });
}
