// The caller's headers: refused, stripped or forwarded.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type JudgedHeaders, judgeHeaders } from '#src/domain/destination/headers.ts';
import { runs } from '#test/support/given/property-runs.ts';

function judged(headers: Record<string, string | number | boolean>): JudgedHeaders {
  const result = judgeHeaders(headers);
  assert.ok(!('refused' in result), JSON.stringify(result));
  return result;
}

const names = (result: JudgedHeaders) => result.forwarded.map(([name]) => name);

test('names become lower case, values text, in the caller’s order', () => {
  assert.deepEqual(judged({ 'X-B': 1, Authorization: 'Bearer t', Cookie: 'a=b', 'x-a': true }), {
    forwarded: [
      ['x-b', '1'],
      ['authorization', 'Bearer t'],
      ['cookie', 'a=b'],
      ['x-a', 'true'],
    ],
    stripped: [],
  });
});

const STRIPPED = [
  'Connection',
  'Keep-Alive',
  'Proxy-Authorization',
  'Proxy-Connection',
  'proxy-anything',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'Expect',
  'Host',
  'Content-Length',
  'HTTP2-Settings',
  'Via',
  'Forwarded',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'X-Forwarded-Anything',
  'X-Real-IP',
  'Metadata',
  'Metadata-Flavor',
  'X-aws-ec2-metadata-token',
  'X-aws-ec2-metadata-token-ttl-seconds',
  'X-Google-Metadata-Request',
  'X-PAYMENT',
  'X-PAYMENT-RESPONSE',
  'PAYMENT-SIGNATURE',
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'Accept-Encoding',
  'User-Agent',
];

for (const name of STRIPPED) {
  test(`${name} is stripped and listed`, () => {
    const result = judged({ [name]: 'x', 'X-Kept': 'y' });
    assert.deepEqual(names(result), ['x-kept']);
    assert.deepEqual(result.stripped, [name.toLowerCase()]);
  });
}

test('headers that Connection lists are stripped too', () => {
  const result = judged({
    Connection: 'close,  My-Secret ,\tX-Other',
    'my-secret': 's',
    'X-OTHER': 'o',
    'x-kept': 'k',
  });
  assert.deepEqual(names(result), ['x-kept']);
  assert.deepEqual(result.stripped, ['connection', 'my-secret', 'x-other']);
});

test('a complete webhook trio is forwarded, a part of it stripped', () => {
  const trio = { 'Webhook-Id': 'i', 'Webhook-Timestamp': '1', 'Webhook-Signature': 'v1,s' };
  assert.deepEqual(names(judged(trio)), ['webhook-id', 'webhook-timestamp', 'webhook-signature']);
  for (const missing of Object.keys(trio)) {
    const part = Object.fromEntries(Object.entries(trio).filter(([name]) => name !== missing));
    const result = judged({ ...part, 'x-kept': 'k' });
    assert.deepEqual(names(result), ['x-kept']);
    assert.equal(result.stripped.length, 2);
  }
  const listed = judged({ ...trio, Connection: 'webhook-id' });
  assert.deepEqual(names(listed), []);
});

const REFUSED: readonly (readonly [string, Record<string, string>])[] = [
  ['an empty name', { '': 'x' }],
  ['a name with a blank', { 'x y': 'x' }],
  ['a name with a colon', { 'x:': 'x' }],
  ['a name with a line break', { 'x\r\nhost': 'x' }],
  ['a name beyond ASCII', { 'x-é': 'x' }],
  ['a Kelvin sign that would become k', { '\u212Aeep-alive': 'x' }],
  ['a value with a line break', { 'x-a': 'b\r\nhost: c' }],
  ['a value with a bare line feed', { 'x-a': 'b\nc' }],
  ['a value with NUL', { 'x-a': 'b\0' }],
  ['a value beyond ASCII', { 'x-a': 'é' }],
  ['a value with DEL', { 'x-a': '\x7f' }],
  ['two names that differ in case only', { 'X-A': '1', 'x-a': '2' }],
  ['two hosts that differ in case only', { Host: '1', host: '2' }],
  ['65 headers', Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`x-${i}`, 'v']))],
  ['more than 16 KiB', { 'x-a': 'a'.repeat(16_384) }],
];

for (const [what, headers] of REFUSED) {
  test(`invalid_request: ${what}`, () => {
    const result = judgeHeaders(headers);
    assert.ok('refused' in result);
    assert.equal(result.refused, 'invalid_request');
    assert.deepEqual(result.details, [{ path: '/headers', message: result.message }]);
  });
}

test('64 headers and 16 KiB are allowed', () => {
  assert.equal(
    judged(Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`x-${i}`, 'v']))).forwarded.length,
    64,
  );
  assert.equal(judged({ 'x-a': 'a'.repeat(16_384 - 7) }).forwarded.length, 1);
});

test('names of built-in object members are ordinary header names', () => {
  const headers = JSON.parse('{"__proto__":"p","constructor":"c","toString":"t","hasOwnProperty":"h"}');
  assert.deepEqual(names(judged(headers)), ['__proto__', 'constructor', 'tostring', 'hasownproperty']);
  assert.deepEqual(judged({}), { forwarded: [], stripped: [] });
});

test('every header is forwarded or stripped, once, and nothing forwarded can end its line', () => {
  const name = fc.oneof(fc.constantFrom(...STRIPPED, 'webhook-id', 'x-a'), fc.string({ maxLength: 8 }));
  const value = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 8 }),
    fc.string({ maxLength: 8 }),
    fc.integer(),
    fc.boolean(),
  );
  let passed = 0;
  fc.assert(
    fc.property(fc.dictionary(name, value, { maxKeys: 6 }), (headers) => {
      const result = judgeHeaders(headers);
      if ('refused' in result) return;
      passed++;
      const all = [...names(result), ...result.stripped].sort();
      assert.deepEqual(
        all,
        Object.keys(headers)
          .map((key) => key.toLowerCase())
          .sort(),
      );
      for (const [header, text] of result.forwarded) {
        assert.match(header, /^[!#$%&'*+\-.^_`|~0-9a-z]+$/);
        assert.match(text, /^[\t\x20-\x7e]*$/);
        assert.ok(!STRIPPED.some((stripped) => stripped.toLowerCase() === header));
      }
    }),
    { numRuns: runs(500) },
  );
  assert.ok(passed > 20, `${passed} passed`);
});
