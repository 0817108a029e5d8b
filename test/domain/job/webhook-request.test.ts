import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { fingerprintText, normaliseRequest, type WebhookRequest } from '#src/domain/job/webhook-request.ts';

const HREF = 'https://target.example/hook';
const normal = (changes: Partial<WebhookRequest> = {}) => normaliseRequest({ url: HREF, ...changes }, HREF);
const print = (changes: Partial<WebhookRequest> = {}) =>
  fingerprintText(normal(changes), 'execute/webhook', null);

test('normal form: defaults filled in, header names in lower case, values as strings', () => {
  const request = normal({ headers: { 'X-Count': 3, 'X-Yes': true, 'X-Text': 'a' } });
  assert.deepEqual(
    { ...request, headers: { ...request.headers } },
    {
      url: HREF,
      method: 'POST',
      headers: { 'x-count': '3', 'x-yes': 'true', 'x-text': 'a' },
      body: undefined,
      idempotencyKey: null,
      retry: { attempts: 1, backoffMs: 250 },
      timeoutMs: 12000,
    },
  );
});

test('a default that is spelled out is the same request', () => {
  const spelled = {
    method: 'POST',
    retry: { attempts: 1, backoffMs: 250 },
    timeoutMs: 12000,
    headers: {},
  } as const;
  assert.equal(print(spelled), print());
});

test('the order of names and the case of header names do not matter', () => {
  const one = { headers: { 'X-A': '1', 'x-b': 2 }, body: { a: 1, b: [1, { c: null, d: '' }] } };
  const two = { headers: { 'X-B': '2', 'x-a': 1 }, body: { b: [1, { d: '', c: null }], a: 1 } };
  assert.equal(print(one), print(two));
});

/** Every field that a repeat must share, changed alone. */
const CHANGES: Partial<WebhookRequest>[] = [
  { method: 'PUT' },
  { headers: { 'x-a': '1' } },
  { headers: { 'x-a': '2' } },
  { headers: { 'x-a': '1', 'x-b': '1' } },
  { headers: { 'x-a': '1', host: 'stripped' } },
  { headers: { __proto__x: '1' } },
  { body: null },
  { body: '' },
  { body: {} },
  { body: { a: 1 } },
  { body: { a: '1' } },
  { idempotencyKey: 'k' },
  { retry: { attempts: 2 } },
  { retry: { backoffMs: 0 } },
  { timeoutMs: 1000 },
];

test('every field counts: url, method, headers, body, key, retry, timeout, route, decision', () => {
  const prints = CHANGES.map(print);
  prints.push(print());
  prints.push(fingerprintText(normaliseRequest({ url: HREF }, `${HREF}2`), 'execute/webhook', null));
  prints.push(fingerprintText(normal(), 'execute/guided-webhook', null));
  prints.push(fingerprintText(normal(), 'execute/webhook', 'dec_a'));
  prints.push(print(JSON.parse('{"headers":{"__proto__":"x"}}')));
  assert.equal(new Set(prints).size, CHANGES.length + 5);
});

test('no body is not the body null, and no body can pass for another field', () => {
  assert.notEqual(print(), print({ body: null }));
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      const equal = isDeepStrictEqual(JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b)));
      assert.equal(print({ body: a }) === print({ body: b }), equal);
    }),
  );
});
