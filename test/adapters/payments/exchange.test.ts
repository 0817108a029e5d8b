import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { test } from 'node:test';
import { pooledExchange, singleExchange } from '#src/adapters/payments/exchange.ts';
import { loopbackServer } from '#test/support/loopback-server.ts';

/** Answers its first request and keeps the connection open; later requests are closed without an answer. Counts them. */
async function fickleServer() {
  let requests = 0;
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    let text = '';
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      const head = text.indexOf('\r\n\r\n');
      if (head < 0) return;
      const length = Number(/content-length: (\d+)/i.exec(text.slice(0, head))?.[1] ?? 0);
      if (text.length < head + 4 + length) return;
      text = text.slice(head + 4 + length);
      requests++;
      if (requests > 1) socket.destroy();
      else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n{}');
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/settle`,
    count: () => requests,
    close: () =>
      new Promise<void>((closed) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => closed());
      }),
  };
}

const codeOf = (answer: Awaited<ReturnType<typeof singleExchange>>) =>
  'code' in answer ? answer.code : answer;

test('a POST is sent once, also if a kept-alive connection closes without an answer', async () => {
  const server = await fickleServer();
  try {
    const ask = { url: server.url, body: { n: 1 }, timeoutMs: 5000 };
    assert.deepEqual(await singleExchange(ask), { status: 200, dateMs: null, json: {} });
    assert.equal(codeOf(await singleExchange(ask)), 'unreachable');
    assert.equal(server.count(), 2);
  } finally {
    await server.close();
  }
});

test('a pooled exchange that fails is sent once more on a new connection', async () => {
  const server = await fickleServer();
  try {
    const ask = { url: server.url, body: { n: 1 }, timeoutMs: 5000 };
    assert.deepEqual(await pooledExchange(ask), { status: 200, dateMs: null, json: {} });
    assert.equal(codeOf(await pooledExchange(ask)), 'unreachable');
    assert.ok(server.count() >= 3 && server.count() <= 4, `${server.count()}`);
  } finally {
    await server.close();
  }
});

test('a settlement uses no connection that a verify has left open', async () => {
  let connections = 0;
  const server = http.createServer((request, response) => {
    request.resume().on('end', () => response.end('{}'));
  });
  server.on('connection', () => connections++);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const ask = {
    url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/`,
    body: {},
    timeoutMs: 5000,
  };
  try {
    for (const exchange of [pooledExchange, singleExchange, singleExchange, pooledExchange])
      assert.ok('json' in (await exchange(ask)));
    assert.equal(connections, 3);
  } finally {
    server.closeAllConnections();
    await new Promise<void>((closed) => server.close(() => closed()));
  }
});

test('the time limit covers a slow answer too', async () => {
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{');
    const drip = setInterval(() => socket.write(' '), 20);
    socket.on('close', () => clearInterval(drip));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/`;
  try {
    for (const exchange of [singleExchange, pooledExchange])
      assert.equal(codeOf(await exchange({ url, timeoutMs: 300 })), 'timeout');
  } finally {
    await new Promise<void>((closed) => server.close(() => closed()));
  }
});

test('a request that cannot be built is our defect: it rejects, and is no failure of the network', async () => {
  const server = await fickleServer();
  const login = () => Promise.reject(new TypeError('a defect'));
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  try {
    for (const exchange of [singleExchange, pooledExchange]) {
      const ask = { url: server.url, timeoutMs: 5000 };
      await assert.rejects(exchange({ ...ask, login }), TypeError);
      await assert.rejects(exchange({ ...ask, body: cyclic }), TypeError);
      await assert.rejects(exchange({ ...ask, url: 'no url' }), TypeError);
    }
    assert.equal(server.count(), 0);
  } finally {
    await server.close();
  }
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
