import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { pooledExchange, singleExchange } from '#src/adapters/payments/exchange.ts';
import { loopbackServer } from '#test/support/process/loopback-server.ts';

/** Answers its first request and keeps the connection open; later requests are closed without an answer. Counts them. */
async function fickleServer() {
  let requests = 0;
  const server = await loopbackServer((request, response) => {
    response.sendDate = false;
    if (++requests > 1) request.socket.destroy();
    else response.end('{}');
  });
  return { ...server, count: () => requests };
}

const codeOf = (answer: Awaited<ReturnType<typeof singleExchange>>) =>
  'code' in answer ? answer.code : answer;

test('a POST is sent once, also if a kept-alive connection closes without an answer', async () => {
  await using server = await fickleServer();
  const ask = { url: server.url, body: { n: 1 }, timeoutMs: 5000 };
  assert.deepEqual(await singleExchange(ask), { status: 200, dateMs: null, json: {} });
  assert.equal(codeOf(await singleExchange(ask)), 'unreachable');
  assert.equal(server.count(), 2);
});

test('a pooled exchange that fails is sent once more on a new connection', async () => {
  await using server = await fickleServer();
  const ask = { url: server.url, body: { n: 1 }, timeoutMs: 5000 };
  assert.deepEqual(await pooledExchange(ask), { status: 200, dateMs: null, json: {} });
  assert.equal(codeOf(await pooledExchange(ask)), 'unreachable');
  assert.ok(server.count() >= 3 && server.count() <= 4, `${server.count()}`);
});

test('a settlement uses no connection that a verify has left open', async () => {
  const connections = new Set<Socket>();
  await using server = await loopbackServer((request, response) => {
    connections.add(request.socket);
    request.resume().on('end', () => response.end('{}'));
  });
  const ask = { url: server.url, body: {}, timeoutMs: 5000 };
  for (const exchange of [pooledExchange, singleExchange, singleExchange, pooledExchange])
    assert.ok('json' in (await exchange(ask)));
  assert.equal(connections.size, 3);
});

test('the time limit covers a slow answer too', async () => {
  await using server = await loopbackServer((_, response) => {
    response.writeHead(200, { 'content-length': 1000 }).write('{');
    const drip = setInterval(() => response.write(' '), 20);
    response.on('close', () => clearInterval(drip));
  });
  for (const exchange of [singleExchange, pooledExchange])
    assert.equal(codeOf(await exchange({ url: server.url, timeoutMs: 300 })), 'timeout');
});

test('a request that cannot be built is our defect: it rejects, and is no failure of the network', async () => {
  await using server = await fickleServer();
  const login = () => Promise.reject(new TypeError('a defect'));
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  for (const exchange of [singleExchange, pooledExchange]) {
    const ask = { url: server.url, timeoutMs: 5000 };
    await assert.rejects(exchange({ ...ask, login }), TypeError);
    await assert.rejects(exchange({ ...ask, body: cyclic }), TypeError);
    await assert.rejects(exchange({ ...ask, url: 'no url' }), TypeError);
  }
  assert.equal(server.count(), 0);
});

test('the runtime’s code of a failed connection is kept for the log; it contains no address', async () => {
  const answer = await singleExchange({ url: 'http://127.0.0.1:9/secret?key=1', timeoutMs: 5000 });
  assert.ok('code' in answer);
  const { code, why } = answer;
  assert.equal(code, 'unreachable');
  assert.ok(why === null || /^[A-Za-z0-9_]+$/.test(why), `${why}`);
});

test('each request that is sent has a login of its own, a repeat too', async () => {
  const seen: unknown[] = [];
  await using server = await loopbackServer(({ headers, method, url }, response) => {
    seen.push([method, url, headers.authorization]);
    if (seen.length === 1) response.destroy();
    else response.end('{}');
  });
  const base = server.url;
  let count = 0;
  const login = async ({ method, url }: { method: string; url: string }) => ({
    authorization: `${++count} ${method} ${url.slice(base.length)}`,
  });
  await pooledExchange({ url: `${base}/verify`, login, body: {}, timeoutMs: 5000 });
  await singleExchange({ url: `${base}/supported`, login, timeoutMs: 5000 });
  assert.deepEqual(seen, [
    ['POST', '/verify', '1 POST /verify'],
    ['POST', '/verify', '2 POST /verify'],
    ['GET', '/supported', '3 GET /supported'],
  ]);
});
