// The verifier as files, and where the pages and documents name it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { snippet } from '#src/discovery/documents/snippets.ts';
import { documentFacts } from '#src/http/routes/documents.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { BASE, fakeWorld, RECEIPT } from '#test/support/world/http-deps.ts';

const world = fakeWorld();
const client = clientOf(world);
const PACKAGE = '/verifier/webhook-relay.tgz';
const FILES = ['/verifier/verify.js', '/verifier/verify.d.ts', '/verifier/verify.py', PACKAGE];

test('each file has its media type, is readable from every origin, and is conditional', async () => {
  const types = [
    'text/javascript; charset=utf-8',
    'application/typescript; charset=utf-8',
    'text/x-python; charset=utf-8',
    'application/gzip',
  ];
  for (const [index, path] of FILES.entries()) {
    const { status, headers } = await client.call(path);
    assert.equal(status, 200, path);
    assert.equal(headers.get('content-type'), types[index]);
    assert.equal(headers.get('access-control-allow-origin'), '*');
    const again = await client.call(path, { headers: { 'if-none-match': headers.get('etag') ?? '' } });
    assert.equal(again.status, 304, path);
  }
});

test('the files are those of the library, and the snippet in Python', async () => {
  assert.equal(await (await client.call('/verifier/verify.js')).text(), '// verify.js');
  assert.equal(await (await client.call('/verifier/verify.d.ts')).text(), '// verify.d.ts');
  assert.deepEqual(new Uint8Array(await (await client.call(PACKAGE)).arrayBuffer()), Uint8Array.of(31, 139));
  const { code } = snippet(documentFacts(world), 'python-verify-offline');
  assert.equal(await (await client.call('/verifier/verify.py')).text(), code);
});

test('every page that shows or offers a verification links to the verifier', async () => {
  for (const path of ['/', '/verify', `/proof/${RECEIPT}`]) {
    const text = await (await client.call(path, { headers: { accept: 'text/html' } })).text();
    for (const link of [PACKAGE, '/verifier/verify.py'])
      assert.ok(text.includes(`href="${link}"`), `${path}: ${link}`);
  }
});

test('every document for agents names the verifier with its address', async () => {
  for (const path of ['/llms.txt', '/api/quickstart', '/api/actions', '/openapi.json', '/api/snippets'])
    assert.ok((await (await client.call(path)).text()).includes(PACKAGE), path);
  const { body } = await client.get('/api/snippets');
  assert.equal((body as { links: Record<string, string> }).links.verifierPackage, BASE + PACKAGE);
});
