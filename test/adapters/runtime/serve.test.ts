import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { CannotListen, type Listening, serve } from '#src/adapters/runtime/serve.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { PaymentProtocol } from '#src/ports/payment-protocol.ts';
import { fakeProtocol } from '#test/support/chain/fakes-protocol.ts';
import { type RawClient, rawClient } from '#test/support/process/http-socket.ts';
import { runtimeName } from '#test/support/process/runtime.ts';
import { manualClock, quiet } from '#test/support/world/fakes.ts';
import { appOf, countingQuota, execution, fakeWorld } from '#test/support/world/http-deps.ts';

const BODY = JSON.stringify({ url: 'https://a.example/' });
const HEAD = 'POST /api/execute/webhook HTTP/1.1\r\nHost: relay\r\nContent-Type: application/json\r\n';
const post = (id: string) => `${HEAD}X-Request-Id: ${id}\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;
const live = (id: string, more = '') =>
  `GET /health/live HTTP/1.1\r\nHost: relay\r\nX-Request-Id: ${id}\r\n${more}\r\n`;

/** The body's time limit of 10 s in a twentieth; everything else in its own time. */
const quick: Clock = {
  ...systemClock(),
  sleep: (ms, signal) => systemClock().sleep(ms === 10_000 ? 500 : ms, signal),
};

type World = Parameters<typeof fakeWorld>[0];

async function served(
  changes: World,
  work: (server: Listening, open: () => Promise<RawClient>) => Promise<void>,
) {
  const world = fakeWorld({ clock: quick, ...changes });
  const server = await serve(appOf(world).fetch, { hostname: '127.0.0.1', port: 0 }, systemClock());
  const clients: RawClient[] = [];
  try {
    await work(server, async () => {
      const client = await rawClient(server.port);
      clients.push(client);
      return client;
    });
  } finally {
    for (const client of clients) client.destroy();
    await server.stop();
  }
  return world;
}

/** An execution that waits to be let go. */
function held() {
  let release = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  let begun = () => {};
  const started = new Promise<void>((resolve) => {
    begun = resolve;
  });
  let finished = () => {};
  const done = new Promise<void>((resolve) => {
    finished = resolve;
  });
  const execute = async () => {
    begun();
    await gate;
    finished();
    return execution();
  };
  return { execute, release: () => release(), started, done };
}

/** Deno leaves the socket open after `connection: close` (denoland/deno#9411): the client gets the header, and closes. */
async function assertClosed(client: RawClient): Promise<void> {
  if (runtimeName === 'bun') await client.closed;
}

test('a body that stops half way is answered 408, and the connection is closed', async () => {
  await served({}, async (_, open) => {
    for (const framing of [
      'Content-Length: 100\r\n\r\n{"url":',
      'Transfer-Encoding: chunked\r\n\r\n2\r\n{"\r\n',
    ]) {
      const client = await open();
      client.send(HEAD + framing);
      const { status, headers, body } = await client.answer();
      assert.equal(status, 408);
      assert.equal(JSON.parse(body).error.code, 'body_timeout');
      assert.equal(headers.get('connection'), 'close');
      assert.ok(headers.get('x-request-id'));
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      await assertClosed(client);
    }
  });
});

test('a body that trickles is answered 408 at its time, however busy it looks', async () => {
  await served({}, async (_, open) => {
    const client = await open();
    client.send(`${HEAD}Content-Length: 100000\r\n\r\n`);
    const trickle = setInterval(() => client.send(' '), 20);
    try {
      assert.equal((await client.answer()).status, 408);
    } finally {
      clearInterval(trickle);
    }
    await assertClosed(client);
  });
});

test('a body that is too large is answered 413 with our own body, before it is all there', async () => {
  const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`;
  const bodies = [
    `Content-Length: 131073\r\n\r\n${'x'.repeat(100)}`,
    `Content-Length: 900000000000\r\n\r\n${'x'.repeat(100)}`,
    `Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(9)}`,
  ];
  const world = await served({}, async (_, open) => {
    for (const body of bodies) {
      const client = await open();
      client.send(HEAD + body);
      const answer = await client.answer();
      assert.equal(answer.status, 413);
      assert.equal(JSON.parse(answer.body).error.code, 'body_too_large');
      assert.ok(answer.headers.get('x-request-id'));
      await assertClosed(client);
    }
  });
  assert.equal(world.executed.length, 0);
});

test('a body in pieces, and one announced with Expect, are taken', async () => {
  await served({}, async (_, open) => {
    const client = await open();
    client.send(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
    for (const char of BODY) client.send(`1\r\n${char}\r\n`);
    client.send('0\r\n\r\n');
    assert.equal((await client.answer()).status, 200);
    const expecting = await open();
    expecting.send(`${HEAD}Expect: 100-continue\r\nContent-Length: ${BODY.length}\r\n\r\n`);
    assert.equal((await expecting.answer()).status, 100);
    expecting.send(BODY);
    assert.equal((await expecting.answer()).status, 200);
  });
});

const withHeader = (bytes: number) =>
  post('r1').replace('\r\n', `\r\nPayment-Signature: ${'p'.repeat(bytes)}\r\n`);

test('16 kB of one header are taken; more than a server takes is answered, and ends no other call', async () => {
  const sizes: number[] = [];
  const quota = countingQuota();
  const payments: PaymentProtocol = {
    ...fakeProtocol(),
    isPresented(header) {
      sizes.push(header('payment-signature')?.length ?? 0);
      return true;
    },
  };
  await served({ quota, payments }, async (_, open) => {
    for (const bytes of [12 * 1024, 16 * 1024]) {
      const client = await open();
      client.send(withHeader(bytes));
      // Read and found to be no payment.
      assert.equal((await client.answer()).status, 402);
    }
    assert.deepEqual(sizes, [12 * 1024, 16 * 1024]);
    for (const bytes of [40 * 1024, 1024 * 1024]) {
      const client = await open();
      client.send(withHeader(bytes));
      // Deno takes 40 kB; over its own limit the runtime answers before the service does, or only closes the connection.
      const status = await client.answer().then(
        (answer) => answer.status,
        () => 'closed',
      );
      assert.ok([402, 400, 431, 'closed'].includes(status), `${bytes}: ${status}`);
    }
    const next = await open();
    next.send(live('r2'));
    assert.equal((await next.answer()).status, 200);
  });
});

test('a connection serves one request after the other, unread bodies included', async () => {
  await served({}, async (_, open) => {
    const client = await open();
    for (const id of ['r1', 'r2']) {
      client.send(post(id));
      const { status, headers } = await client.answer();
      assert.deepEqual([status, headers.get('x-request-id')], [200, id]);
    }
    const unread = await open();
    unread.send(`POST /health/live HTTP/1.1\r\nHost: relay\r\nContent-Length: 5\r\n\r\nhello${live('r3')}`);
    assert.equal((await unread.answer()).status, 405);
    assert.equal((await unread.answer()).headers.get('x-request-id'), 'r3');
  });
});

test('pipelined requests are answered in order, or not at all: never one with the answer of another', async () => {
  const world = await served({}, async (_, open) => {
    const client = await open();
    client.send(post('r1') + post('r2') + live('r3'));
    for (const id of ['r1', 'r2', 'r3']) {
      const answer = await client.answer().catch(() => null);
      // Bun ends a connection whose next request comes before the answer of the last is ready.
      if (answer === null && runtimeName === 'bun') return;
      assert.equal(answer?.headers.get('x-request-id'), id);
    }
  });
  assert.ok(world.executed.length >= 1 && world.executed.length <= 2);
});

test('HEAD has the length of GET and no body', async () => {
  await served({}, async (_, open) => {
    const client = await open();
    client.send(live('get'));
    const get = await client.answer();
    client.send(live('head').replace('GET', 'HEAD'));
    const head = await client.answer({ head: true });
    assert.equal(head.headers.get('content-length'), get.headers.get('content-length'));
    assert.equal(head.headers.get('content-type'), 'application/json');
    client.send(live('next'));
    assert.equal((await client.answer()).headers.get('x-request-id'), 'next');
  });
});

test('requests without a Host, with a short one and with a broken one', async () => {
  await served({}, async (_, open) => {
    for (const [text, status] of [
      ['GET /health/live HTTP/1.0\r\n\r\n', 200],
      ['GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n', 200],
      ['GET /health/live HTTP/1.1\r\nHost: a/openapi.json?\r\n\r\n', 400],
      ['GET http://other.example/health/live HTTP/1.1\r\nHost: other.example\r\n\r\n', 200],
    ] as const) {
      const client = await open();
      client.send(text);
      assert.equal((await client.answer()).status, status, text);
    }
  });
});

test('a Host that no URL can have is refused, in the header and in the request line; none and an odd one pass', async () => {
  const world = await served({}, async (_, open) => {
    const asked = async (text: string) => {
      const client = await open();
      client.send(text);
      return client.answer();
    };
    const get = (host: string) => asked(`GET /api/proofs/recent?limit=1 HTTP/1.1\r\n${host}\r\n`);
    const mcp = (host: string) =>
      asked(post('m').replace('/api/execute/webhook', '/mcp').replace('relay', host));
    for (const host of ['evil:99999', 'evil:abc', 'a:b:c', 'a%00b', '1.2.3.256', 'xn--', '[::1', 'a:65536']) {
      for (const answer of [await get(`Host: ${host}\r\n`), await mcp(host)]) {
        assert.equal(answer.status, 400, host);
        assert.match(answer.body, /"code":"invalid_request","message":"The Host header is malformed."/);
      }
    }
    for (const host of [
      'Host:\r\n',
      'Host: [::1]:80\r\n',
      'Host: xn--bcher-kva.test\r\n',
      'Host: my_relay:80\r\n',
    ])
      assert.equal((await get(host)).status, 200, host);
    assert.equal((await asked('GET /api/proofs/recent?limit=1 HTTP/1.0\r\n\r\n')).status, 200);
    // Bun goes by the header alone.
    const status = runtimeName === 'bun' ? 200 : 400;
    for (const target of ['http://evil:99999', 'http://[::1', 'http://xn--']) {
      const text = `GET ${target}/api/proofs/recent?limit=1 HTTP/1.1\r\nHost: a\r\n\r\n`;
      assert.equal((await asked(text)).status, status, target);
    }
  });
  assert.deepEqual(world.log.lines, []);
});

test('the client’s address is the socket’s', async () => {
  const keys: string[] = [];
  const state = { allowed: true, limit: 60, remaining: 59, resetMs: 1 };
  const quota = {
    async take(_: unknown, key: string) {
      keys.push(key);
      return state;
    },
    look: async () => state,
  };
  await served({ quota }, async (_, open) => {
    const client = await open();
    client.send(post('r1').replace('\r\n', '\r\nX-Forwarded-For: 203.0.113.9\r\n'));
    assert.equal((await client.answer()).status, 200);
  });
  assert.deepEqual(keys, ['127.0.0.1']);
});

test('a client that goes away does not end what it began', async () => {
  const { execute, release, started, done } = held();
  await served({ execute }, async (_, open) => {
    const client = await open();
    client.send(post('r1'));
    await started;
    client.destroy();
    release();
    await done;
    const next = await open();
    next.send(live('r2'));
    assert.equal((await next.answer()).status, 200);
  });
});

test('stop waits up to 120 s for what is in flight', async () => {
  const slept: number[] = [];
  const clock: Clock = {
    ...systemClock(),
    sleep(ms, signal) {
      slept.push(ms);
      return systemClock().sleep(ms, signal);
    },
  };
  const { execute, release, started } = held();
  const app = appOf(fakeWorld({ execute, clock: quick }));
  const server = await serve(app.fetch, { hostname: '127.0.0.1', port: 0 }, clock);
  const client = await rawClient(server.port);
  client.send(post('r1'));
  await started;
  const stopping = server.stop();
  assert.deepEqual(slept, [120_000]);
  release();
  assert.equal((await client.answer()).status, 200);
  await stopping;
});

test('stop waits no longer than its limit, whatever is still in flight', async () => {
  const { execute, release, started } = held();
  const app = appOf(fakeWorld({ execute, clock: quick }));
  const server = await serve(app.fetch, { hostname: '127.0.0.1', port: 0 }, systemClock());
  const client = await rawClient(server.port);
  client.send(post('r1'));
  await started;
  await server.stop(1);
  release();
  client.destroy();
});

test('stop: nothing new is accepted, what is in flight is answered, idle connections are closed', async () => {
  const { execute, release, started } = held();
  await served({ execute }, async (server, open) => {
    const idle = await open();
    idle.send(live('r0'));
    await idle.answer();
    const flying = await open();
    flying.send(post('r1'));
    await started;
    let stopped = false;
    const stopping = server.stop().then(() => {
      stopped = true;
    });
    await assert.rejects(refusedEventually(server.port));
    assert.equal(stopped, false);
    release();
    const { status, headers } = await flying.answer();
    assert.deepEqual([status, headers.get('x-request-id')], [200, 'r1']);
    assert.equal(headers.get('connection'), 'close');
    await stopping;
    await Promise.all([idle.closed, flying.closed]);
    await server.stop();
  });
});

/** Connects until that is refused. */
async function refusedEventually(port: number): Promise<never> {
  for (;;) (await rawClient(port)).destroy();
}

test('a port that is taken rejects', async () => {
  await served({}, async ({ port }) => {
    await assert.rejects(serve(async () => new Response(), { hostname: '127.0.0.1', port }, systemClock()));
  });
});

// Deno counts the memory of connections itself.
const onBun = runtimeName === 'bun' ? test : () => undefined;
onBun('garbage is collected after many requests, not after few', async () => {
  const { gc } = Bun;
  let collections = 0;
  Bun.gc = (force) => {
    collections += 1;
    gc(force);
  };
  const clock = manualClock();
  const server = await serve(async () => new Response(), { hostname: '127.0.0.1', port: 0 }, clock);
  const looks = async () => {
    const isWaiting = clock.advanceToNext();
    await quiet();
    return isWaiting;
  };
  const request = async (count: number) => {
    for (let n = 0; n < count; n++) await fetch(`http://127.0.0.1:${server.port}/`);
  };
  try {
    await request(400);
    assert.equal(await looks(), false);
    await request(200);
    assert.equal(await looks(), true);
    assert.equal(collections, 0, 'requests still come');
    assert.equal(await looks(), true);
    assert.equal(collections, 1);
    assert.equal(await looks(), false);
  } finally {
    await server.stop();
    Bun.gc = gc;
  }
});

test('a port that is taken, an address of another machine: one error, which says how to find out', async () => {
  await served({}, async ({ port }) => {
    const handler = async () => new Response('');
    for (const at of [
      { hostname: '127.0.0.1', port },
      { hostname: '192.0.2.1', port: 0 },
    ])
      await assert.rejects(serve(handler, at, systemClock()), (error) => {
        assert.ok(error instanceof CannotListen);
        return /^cannot listen at [\d.]+:\d+: .+; relay doctor says which$/.test(error.message);
      });
  });
});
