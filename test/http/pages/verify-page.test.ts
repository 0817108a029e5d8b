// The page where anyone verifies a receipt, and the script that it runs, as they are served.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { clientOf } from '#test/support/process/http-client.ts';
import { fakeWorld } from '#test/support/world/http-deps.ts';
import { noTransparency } from '#test/support/world/no-transparency.ts';

const SCRIPT = 'const said = "…";';
const client = clientOf(fakeWorld({ verifyScript: SCRIPT }));

test('the script has its type, an entity tag, and is asked for again each time', async () => {
  const first = await client.get('/verify.js');
  assert.equal(first.status, 200);
  assert.equal(first.body, SCRIPT);
  assert.equal(first.headers.get('content-type'), 'text/javascript; charset=utf-8');
  assert.equal(first.headers.get('x-content-type-options'), 'nosniff');
  assert.equal(first.headers.get('cache-control'), 'no-cache');
  const tag = first.headers.get('etag') ?? '';
  assert.match(tag, /^W\/"[0-9a-f]{32}"$/);
  const again = await client.call('/verify.js?v', { headers: { 'if-none-match': tag } });
  assert.deepEqual([again.status, again.headers.get('etag')], [304, tag]);
});

test('the page names that script by its hash, and every field by a label', async () => {
  const { status, headers, body } = await client.get('/verify');
  const text = String(body);
  assert.equal(status, 200);
  const hash = createHash('sha256').update(SCRIPT).digest('base64');
  assert.ok(text.includes(` integrity="sha256-${hash}"`));
  assert.ok(headers.get('content-security-policy')?.includes(`script-src 'sha256-${hash}'`));
  for (const [, id] of text.matchAll(/<textarea id="([^"]+)"/g))
    assert.match(text, new RegExp(`<label for="${id}">`));
  assert.equal(text.match(/<textarea /g)?.length, 5);
  assert.equal(text.match(/<input type="file"[^>]* aria-label="[^"]+"/g)?.length, 5);
});

test('the page is asked for again each time, and sent again only if it has changed', async () => {
  const { headers } = await client.get('/verify');
  assert.equal(headers.get('cache-control'), 'no-cache');
  const again = await client.call('/verify', { headers: { 'if-none-match': headers.get('etag') ?? '' } });
  assert.deepEqual([again.status, await again.text()], [304, '']);
});

test('without the script there is no form, and the command line is shown instead', async () => {
  const text = String((await client.get('/verify')).body);
  assert.match(text, /<form [^>]* hidden>/);
  assert.match(text, /<p id="no-script">This page checks with JavaScript/);
  assert.match(text, /relay verify receipt\.json --keys jwks\.json/);
});

test('where a transparency log is kept, the command line demands the proof as well', async () => {
  const transparency = { ...noTransparency, latest: () => 'a checkpoint' };
  const kept = String((await clientOf(fakeWorld({ transparency })).get('/verify')).body);
  assert.match(
    kept,
    /curl -sf https:\/\/relay\.example\/log\/proof\/\{receiptId\} &gt; receipt\.tlog-proof\n/,
  );
  assert.match(kept, /relay verify receipt\.json --keys jwks\.json --proof receipt\.tlog-proof</);
  assert.doesNotMatch(String((await client.get('/verify')).body), /curl[^\n]*log\/proof|--proof/);
});
