// The buyer's requests over HTTP: limited in time and size, and no redirect is followed.
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before, test } from 'node:test';
import { limitedSend, present } from '#src/buyer/present.ts';
import { type LoopbackServer, loopbackServer } from '#test/support/process/loopback-server.ts';
import { manualClock } from '#test/support/world/fakes.ts';

const paths: Readonly<Record<string, (response: ServerResponse) => void>> = {
  '/small': (response) => void response.end('x'.repeat(1000)),
  '/exact': (response) => void response.end('x'.repeat(2000)),
  '/endless': (response) => {
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(100)));
    };
    response.on('drain', more);
    more();
  },
  '/slow': (response) => {
    const timer = setInterval(() => response.write('x'), 5);
    response.on('close', () => clearInterval(timer));
  },
  '/silent': () => undefined,
  '/redirect': (response) => void response.writeHead(307, { location: '/small' }).end(),
};
let server: LoopbackServer;
let requests = 0;
before(async () => {
  server = await loopbackServer(({ url = '' }, response) => {
    requests++;
    paths[url]?.(response);
  });
});
after(() => server.down());

const LIMITS = { timeoutMs: 60_000, maxBytes: 2000 };
const get = (path: string, timeoutMs = LIMITS.timeoutMs) =>
  limitedSend({ ...LIMITS, timeoutMs })(new Request(`${server.url}${path}`));

test('an answer up to the limit is read completely', async () => {
  assert.equal((await (await get('/small')).text()).length, 1000);
  assert.equal((await (await get('/exact')).text()).length, 2000);
});

test('an endless answer ends at the limit of its size', async () => {
  await assert.rejects(get('/endless'), /an answer of more than 2000 bytes/);
});

test('an answer that drips, or never begins, ends at the limit of its time', async () => {
  for (const path of ['/slow', '/silent'])
    await assert.rejects(get(path, 300), /no complete answer within 0\.3 s/);
});

test('a redirect is an answer: its target is not called', async () => {
  const before = requests;
  assert.equal((await get('/redirect')).status, 307);
  assert.equal(requests - before, 1);
});

test('an endless answer to a payment: the reason is stated, and the purchase ends unfinished', async () => {
  const clock = { ...manualClock(), sleep: async (ms: number) => clock.advance(ms) };
  const deps = { send: limitedSend(LIMITS), clock, waiting: () => undefined };
  const result = await present(deps, `${server.url}/endless`, '{}', {
    name: 'PAYMENT-SIGNATURE',
    value: 'x',
  });
  assert.deepEqual(result, { kind: 'unfinished', last: 'an answer of more than 2000 bytes' });
});
