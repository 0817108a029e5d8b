import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRefused } from '#src/domain/refusal.ts';
import { readInteger } from '#src/http/request/validation.ts';

const limit = { name: 'limit', min: 1, max: 50, default: 10, description: 'How many.' };

test('a parameter is read as its query stands, whatever stands around the query; no text throws', () => {
  const read = (url: string) => readInteger(url, limit);
  for (const base of [
    'http://relay.example/a',
    '/a',
    'http://a:99999/a',
    'http://[::1/a',
    'http://xn--/a',
    '',
  ]) {
    assert.equal(read(base), 10, base);
    assert.equal(read(`${base}?limit=7`), 7, base);
    assert.equal(read(`${base}?more=1&l%69mit=%37&#limit=9`), 7, base);
    assert.equal(read(`${base}#?limit=7`), 10, base);
    for (const query of [
      'limit=0',
      'limit=51',
      'limit=',
      'limit=7&limit=7',
      'limit=+7',
      'limit=%2',
      'limit=7?',
    ])
      assert.ok(isRefused(Object(read(`${base}?${query}`))), `${base}?${query}`);
  }
});
