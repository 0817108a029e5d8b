// The transparency log on the wire: media types, caching, what is refused and how. Whether the answers are true is the
// use case's and the journey's.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Fault } from '#src/domain/refusal.ts';
import { transparency as transparencyOver } from '#src/usecases/transparency/proofs.ts';
import { publicLog, receiptIdAt } from '#test/support/log/public-log.ts';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import { BASE, fakeWorld, RECEIPT } from '#test/support/world/http-deps.ts';
import { noTransparency } from '#test/support/world/no-transparency.ts';

const log = await publicLog(300);
await log.add(RECEIPT, 'e30.e30.e30');
const transparency = log.asked;
const client = clientOf(fakeWorld({ transparency }));

const FOR_EVER = 'public, max-age=31536000, immutable';
const FEW_SECONDS = 'public, max-age=2';
const TEXT = 'text/plain; charset=utf-8';
const proofOf = (id: string) => `/log/proof/${id}`;

const GOOD = [
  ['/log/checkpoint', TEXT, FEW_SECONDS],
  ['/log/key', TEXT, FEW_SECONDS],
  ['/log/tile/0/000', 'application/octet-stream', FOR_EVER],
  ['/log/tile/0/001.p/44', 'application/octet-stream', FOR_EVER],
  ['/log/tile/1/000.p/1', 'application/octet-stream', FOR_EVER],
  ['/log/tile/entries/001.p/3', 'application/octet-stream', FOR_EVER],
  [proofOf(receiptIdAt(7)), TEXT, FEW_SECONDS],
  ['/log/consistency?from=3&to=300', 'application/json', FOR_EVER],
] as const;

for (const [path, type, cache] of GOOD) {
  test(`${path}: its media type, how long it may be kept, and readable from every origin`, async () => {
    const { status, headers } = await client.call(path, { headers: { origin: 'https://elsewhere.example' } });
    assert.equal(status, 200);
    assert.equal(headers.get('content-type'), type);
    assert.equal(headers.get('cache-control'), cache);
    assert.equal(headers.get('access-control-allow-origin'), '*');
    assert.equal(headers.has('set-cookie'), false);
  });

  test(`${path}: 304 for who has it, HEAD as GET, 405 for other methods`, async () => {
    const first = await client.call(path);
    const etag = first.headers.get('etag') ?? '';
    assert.match(etag, /^W\/"[0-9a-f]{32}"$/);
    const again = await client.call(path, { headers: { 'if-none-match': etag } });
    assert.deepEqual([again.status, await again.text()], [304, '']);
    assert.equal(again.headers.get('cache-control'), cache);
    const changed = await client.call(path, { headers: { 'if-none-match': 'W/"00"' } });
    assert.equal(changed.status, 200);
    const head = await client.call(path, { method: 'HEAD' });
    assert.deepEqual([head.status, head.headers.get('etag')], [200, etag]);
    const posted = await client.call(path, { method: 'POST' });
    assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD, OPTIONS']);
  });
}

test('the bodies are those of the log, byte for byte', async () => {
  const bytes = async (path: string) => Buffer.from(await (await client.call(path)).arrayBuffer());
  const own = (body: string | Uint8Array | null) => Buffer.from(body ?? '');
  assert.deepEqual(await bytes('/log/checkpoint'), own(await transparency.checkpoint()));
  assert.deepEqual(await bytes('/log/key'), own(`${await transparency.key()}\n`));
  const tile = await transparency.tile({ level: 0, n: 1, width: 44 });
  assert.deepEqual(await bytes('/log/tile/0/001.p/44'), own(tile));
  const bundle = await transparency.tile({ level: 'entries', n: 0, width: 256 });
  assert.deepEqual(await bytes('/log/tile/entries/000'), own(bundle));
  const proof = await transparency.prove(receiptIdAt(7));
  assert.ok(typeof proof === 'string');
  assert.deepEqual(await bytes(proofOf(receiptIdAt(7))), own(proof));
  const { body } = await client.get('/log/consistency?to=300&from=3');
  assert.deepEqual(body, await transparency.consistency(3, 300));
  const guide = readFileSync(`${rootPath}/src/verify/README.md`, 'utf8');
  assert.ok(guide.includes(`answers \`{${Object.keys(Object(body)).join(', ')}}\``));
  for (const [from, to] of [
    [0, 3],
    [3, 3],
  ] as const) {
    const { body } = await client.get(`/log/consistency?from=${from}&to=${to}`);
    assert.deepEqual(Object(body).proof, []);
  }
  // What is cached permanently has one address.
  const spelled = await client.call('/log/consistency?to=300&from=3');
  assert.doesNotMatch(spelled.headers.get('cache-control') ?? '', /immutable/);
});

test('a proof bears the name of its file', async () => {
  const { headers } = await client.call(proofOf(receiptIdAt(7)));
  assert.equal(headers.get('content-disposition'), `inline; filename="${receiptIdAt(7)}.tlog-proof"`);
});

const NO_TILES = [
  ['another spelling', ['0/0', '00/000', '0/0000', '0/x000/000', '0/%30%30%30', '0/000.p/044', '0/000/']],
  ['no width of a partial tile', ['0/000.p/0', '0/000.p/256', '0/000.p/', '0/001.p/-1', '0/001.P/1']],
  ['no level', ['64/000.p/1', '-1/000', 'entry/000', 'entries%2F000', '']],
  ['no number', ['0/-01', '0/abc', '0/x001/x000', `0/${'x999/'.repeat(9)}999`]],
  ['more than the newest checkpoint has', ['0/001', '0/001.p/45', '0/002.p/1', '1/000.p/2', '2/000.p/1']],
] as const;

for (const [what, paths] of NO_TILES) {
  test(`a tile of ${what}: 404 route_not_found, which no cache may store`, async () => {
    for (const path of paths) {
      const response = await client.call(`/log/tile/${path}`);
      assert.equal(response.headers.get('cache-control'), 'no-store');
      const { status, code } = await errorOf(response);
      assert.deepEqual([status, code], [404, 'route_not_found'], path);
    }
  });
}

test('receipt_not_found: an id that was never given out, without asking anyone, and one of no leaf', async () => {
  const asked: string[] = [];
  const prove: typeof transparency.prove = (id) => {
    asked.push(id);
    return transparency.prove(id);
  };
  const watched = clientOf(fakeWorld({ transparency: { ...transparency, prove } }));
  for (const id of ['job_0000000000000000000000000a', 'rcpt_1', '__proto__', '%00', receiptIdAt(9999)]) {
    const { status, code } = await errorOf(await watched.call(proofOf(id)));
    assert.deepEqual([status, code], [404, 'receipt_not_found'], id);
  }
  assert.deepEqual([...new Set(asked)], [receiptIdAt(9999)]);
});

test('receipt_not_ready: 409 with Retry-After until a checkpoint has the receipt', async () => {
  const response = await client.call(proofOf(RECEIPT));
  assert.equal(response.headers.get('retry-after'), '5');
  const { status, code } = await errorOf(response);
  assert.deepEqual([status, code], [409, 'receipt_not_ready']);
});

const BAD_SIZES = [
  ['', '/from', '/to'],
  ['?from=x&to=y', '/from', '/to'],
  ['?from=1&to=301', '/to'],
  ['?from=6&to=5', '/from'],
] as const;

for (const [query, ...paths] of BAD_SIZES) {
  test(`consistency${query || ' of nothing'}: 400 invalid_request with what is wrong`, async () => {
    const { status, code, details } = await errorOf(await client.call(`/log/consistency${query}`));
    assert.deepEqual([status, code], [400, 'invalid_request']);
    const faults = details as { path: string; message: string }[];
    assert.deepEqual(
      faults.map(({ path }) => path),
      paths,
    );
    for (const { message } of faults) assert.ok(message.length > 5);
  });
}

const EVERY = GOOD.map(([path]) => path);

test('a relay without a transparency log says so: 404 route_not_found, and nothing is to be kept', async () => {
  const without = clientOf(fakeWorld({ transparency: noTransparency }));
  for (const path of EVERY) {
    const response = await without.call(path);
    assert.equal(response.headers.get('cache-control'), 'no-store');
    const { status, code, message } = await errorOf(response);
    assert.deepEqual([status, code], [404, 'route_not_found'], path);
    assert.match(message, /no transparency log/, path);
  }
});

test('while the rows are behind the log, a miss is read_models_unavailable: nothing is denied that may be', async () => {
  const behind = clientOf(
    fakeWorld({ transparency: noTransparency, progress: { reachedHead: async () => false } }),
  );
  for (const path of EVERY) {
    const response = await behind.call(path);
    assert.equal(response.headers.get('retry-after'), '1');
    const { status, code } = await errorOf(response);
    assert.deepEqual([status, code], [503, 'read_models_unavailable'], path);
  }
});

test('a miss is looked for again once the rows have reached the head of the log', async () => {
  const growing = await publicLog(3);
  await growing.signAt(2);
  const reachedHead = async () => {
    await growing.signAt(3);
    return true;
  };
  const late = clientOf(fakeWorld({ transparency: growing.asked, progress: { reachedHead } }));
  for (const path of [proofOf(receiptIdAt(2)), '/log/tile/0/000.p/3', '/log/consistency?from=0&to=3']) {
    await growing.signAt(2);
    assert.equal((await late.call(path)).status, 200, path);
  }
});

test('read models that are away: 503 with Retry-After for every one of them', async () => {
  const away = async () => {
    throw new Fault('read_models_unavailable', 'away', { retryAfterSeconds: 1 });
  };
  const rows = { checkpoint: away, cosigned: away, tile: away, leafIndex: away };
  const none = clientOf(fakeWorld({ transparency: transparencyOver({ ...log.deps, rows }) }));
  for (const path of EVERY) {
    const { status, code } = await errorOf(await none.call(path));
    assert.deepEqual([status, code], [503, 'read_models_unavailable'], path);
  }
});

test('every documented address of the log answers, with the documented media type', async () => {
  const { body: index } = await client.get('/api/discovery');
  const { transparencyLog } = index as {
    transparencyLog: { id: string; address: string; mediaType: string }[];
  };
  const filled = (address: string) =>
    address
      .replace(BASE, '')
      .replace('{receiptId}', receiptIdAt(7))
      .replace('{+path}', '0/000')
      .replace('{?from,to}', '?from=1&to=2');
  const documented = transparencyLog.map(({ address }) => address);
  for (const { address, mediaType } of transparencyLog) {
    const { status, headers } = await client.call(filled(address));
    assert.deepEqual([status, headers.get('content-type')], [200, mediaType], address);
  }
  const { body: capabilities } = await client.get('/api/capabilities');
  const { transparencyLog: terms } = capabilities as { transparencyLog: Record<string, string> };
  for (const name of ['checkpoint', 'key', 'tiles', 'proof', 'consistency']) {
    const address = terms[name] ?? '';
    assert.ok(documented.includes(address), name);
    assert.equal((await client.call(filled(address))).status, 200, name);
  }
  assert.deepEqual([documented.length, terms.witnessing], [5, 'unwitnessed']);
});
