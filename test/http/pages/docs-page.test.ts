import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROUTES } from '#src/discovery/routes.ts';
import { shapeOf } from '#src/http/pages/docs-page.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { fakeWorld } from '#test/support/world/http-deps.ts';

const client = clientOf(fakeWorld());
const page = client.get('/docs').then(({ body }) => String(body));

test('every operation of the interface description is in the page, with its answers', async () => {
  const [text, { paths }] = [await page, await client.document()];
  const missing = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { operationId, responses }]) => {
      const article = text.split('<article').find((part) => part.includes(`id="op-${operationId}"`)) ?? '';
      const parts = [
        `<span class="method">${method.toUpperCase()}</span> <code>${path}</code>`,
        ...Object.keys(responses).map((status) => `<code>${status}</code>`),
      ];
      return parts.filter((part) => !article.includes(part)).map((part) => `${operationId}: ${part}`);
    }),
  );
  assert.deepEqual(missing, []);
  assert.ok(Object.keys(paths).length > 10);
});

test('the body of an error is followed by where every code is explained', async () => {
  const [, errors = ''] = (await page).split('<h2 id="errors">');
  assert.match(errors, /<a href="\/api\/errors">/);
});

test('a paid operation has its price, and demo mode that it is not charged', async () => {
  const paid = String((await clientOf(fakeWorld({ settings: { mode: 'x402' } })).get('/docs')).body);
  for (const [text, isDemo] of [
    [await page, true],
    [paid, false],
  ] as const) {
    const priced = text.split('<article').filter((part) => part.includes('0.003 USD'));
    assert.equal(priced.length, Object.values(ROUTES).filter(({ paid }) => paid).length);
    for (const part of priced) assert.equal(part.includes('not charged in demo mode'), isDemo);
  }
});

test('it is a page with its policy, and is not sent again to who knows it', async () => {
  const first = await client.call('/docs');
  assert.equal(first.status, 200);
  assert.equal(first.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.match(first.headers.get('content-security-policy') ?? '', /^default-src 'none'; style-src 'self';/);
  const text = await first.text();
  assert.doesNotMatch(text, /<script(?! type="module" src="\/verify\.js\?)|javascript:/i);
  assert.doesNotMatch(text.replace(/<pre.*?<\/pre>/gs, ''), /`/);
  const again = await client.call('/docs', {
    headers: { 'if-none-match': first.headers.get('etag') ?? '' },
  });
  assert.equal(again.status, 304);
  assert.equal(await again.text(), '');
});

test('a schema is shown in the notation of TypeScript, with limits and descriptions', () => {
  const cases = [
    [{ type: 'string' }, 'string'],
    [{ const: 'POST', type: 'string' }, '"POST"'],
    [{ anyOf: [{ const: 1 }, { const: 2 }, { type: 'null' }] }, '1 | 2 | null'],
    [{ enum: ['a', 'b'] }, '"a" | "b"'],
    [{ type: ['string', 'null'] }, 'string | null'],
    [{ type: 'array', items: { type: 'string' } }, 'Array<string>'],
    [{ type: 'object', patternProperties: { '^.*$': { type: 'number' } } }, 'Record<string, number>'],
    [{ type: 'object', additionalProperties: { type: 'boolean' } }, 'Record<string, boolean>'],
    [{ type: 'object', additionalProperties: false }, 'object'],
    [{}, 'unknown'],
  ] as const;
  for (const [schema, words] of cases) assert.equal(shapeOf(schema), words);
  const inner = { type: 'object', properties: { x: { type: 'integer', minimum: 1, default: 1 } } };
  const either = { anyOf: [inner, { type: 'null' }], description: 'One.' };
  assert.equal(
    shapeOf({ properties: { list: { type: 'array', items: inner }, either }, required: ['list'] }),
    `{
  list: Array<{
    x?: integer; // minimum 1, default 1
  }>;
  either?: {
    x?: integer; // minimum 1, default 1
  } | null; // One.
}`,
  );
});
