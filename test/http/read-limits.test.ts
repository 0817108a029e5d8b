// The rate limit of reads for each client address, and the pace of all reads while calls are executed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITS } from '#src/domain/limits.ts';
import { letPass, manualClock, quiet } from '#test/support/world/fakes.ts';
import { appOf, fakeWorld, JOB } from '#test/support/world/http-deps.ts';

function given({ readsPerMinute = 120, inFlight = 0 } = {}) {
  const clock = manualClock();
  const state = { inFlight };
  const app = appOf(
    fakeWorld({ clock, settings: { readsPerMinute }, executionsInFlight: () => state.inFlight }),
  );
  const from =
    (clientAddress: string) =>
    (path: string, headers: Record<string, string> = {}) =>
      app.fetch(new Request(`https://relay.example${path}`, { headers }), { clientAddress });
  return { clock, state, from, read: from('198.51.100.1') };
}

type World = ReturnType<typeof given>;

/** Reads until one is refused; how many were answered. */
async function readsUntilRefused({ clock, read }: World, path = '/api/trust'): Promise<number> {
  for (let n = 0; n < 500; n++) {
    const { status } = await letPass(clock, read(path));
    if (status === 429) return n;
    assert.ok(status === 200 || status === 404, path);
  }
  return 500;
}

const RECORDS = [
  `/api/jobs/${JOB}`,
  `/api/verify/jobs/${JOB}`,
  '/api/proofs/recent',
  '/api/decisions/recent',
  '/api/monitoring/executions',
  '/api/trust',
  '/status',
  '/',
  `/proof/${JOB}`,
  '/log/checkpoint',
];
const FREE = [
  '/openapi.json',
  '/api',
  '/docs',
  '/.well-known/jwks.json',
  '/health',
  '/health/live',
  '/llms.txt',
];

test('reads of an address: a burst at once, then so many a minute; every record counts, documents and health do not', async () => {
  for (const path of RECORDS) assert.equal(await readsUntilRefused(given(), path), 20, path);
  const it = given();
  await readsUntilRefused(it);
  for (const path of FREE) assert.equal((await it.read(path)).status, 200, path);
  assert.equal((await it.from('198.51.100.2')('/api/trust')).status, 200, 'another address');
});

test('reads: headers say what is left; a refusal says when to come again, and is answered after a second', async () => {
  const it = given();
  const headersOf = ({ headers }: Response) =>
    ['limit', 'remaining', 'reset', 'policy'].map((name) => headers.get(`ratelimit-${name}`));
  assert.deepEqual(headersOf(await it.read('/api/trust')), ['20', '19', '1', '20;w=10']);
  assert.deepEqual(headersOf(await it.read('/api/trust')), ['20', '18', '1', '20;w=10']);
  for (let n = 2; n < 20; n++) await it.read('/api/trust');
  const before = it.clock.monotonic();
  const refused = await letPass(it.clock, it.read('/api/trust'));
  assert.equal(it.clock.monotonic() - before, 1000);
  assert.equal(refused.status, 429);
  assert.deepEqual(headersOf(refused), ['20', '0', '10', '20;w=10']);
  assert.equal(refused.headers.get('retry-after'), '1');
  assert.deepEqual(await refused.json(), {
    error: { code: 'rate_limited', message: 'Too many reads from this address. Come again later.' },
  });
  // Two units came meanwhile, which the refusal did not take.
  assert.deepEqual([(await it.read('/api/trust')).status, (await it.read('/api/trust')).status], [200, 200]);
});

test('reads: an IPv6 client counts by its /64; callers on this machine are not counted', async () => {
  const it = given();
  for (let n = 0; n < 20; n++) assert.equal((await it.from(`2001:db8::${n + 1}`)('/api/trust')).status, 200);
  assert.equal((await letPass(it.clock, it.from('2001:db8::ffff')('/api/trust'))).status, 429);
  for (const own of ['127.0.0.1', '::1'])
    for (let n = 0; n < 100; n++) assert.equal((await it.from(own)('/api/trust')).status, 200);
});

test('reads: a browser gets a page, a badge stays a badge', async () => {
  const it = given();
  await readsUntilRefused(it);
  const html = { accept: 'text/html' };
  for (const path of ['/', '/status', `/proof/${JOB}`]) {
    const page = await letPass(it.clock, it.read(path, html));
    // Two units come in each second.
    if (page.status === 200) continue;
    assert.deepEqual(
      [page.status, page.headers.get('content-type')],
      [429, 'text/html; charset=utf-8'],
      path,
    );
    assert.match(await page.text(), /Too many reads/);
  }
  await readsUntilRefused(it);
  const badge = await letPass(it.clock, it.read(`/proof/${JOB}/badge.svg`));
  assert.deepEqual([badge.status, badge.headers.get('content-type')], [200, 'image/svg+xml']);
});

test('pace: while a call is executed, and a second longer, all reads together take turns; before and after they do not', async () => {
  const it = given({ readsPerMinute: 1_000_000 });
  const { max } = LIMITS.readsBesideExecutions;
  const readMany = async (count: number, path: string) => {
    const before = it.clock.monotonic();
    const statuses = Array.from({ length: count }, (_, n) =>
      it
        .from(`198.51.100.${n % 250}`)(path)
        .then(({ status }) => status),
    );
    const answered = await letPass(it.clock, Promise.all(statuses));
    return { ms: it.clock.monotonic() - before, statuses: new Set(answered) };
  };
  assert.deepEqual(await readMany(2 * max, '/llms.txt'), { ms: 0, statuses: new Set([200]) });
  it.state.inFlight = 1;
  for (const [path, status] of [
    ['/llms.txt', 200],
    ['/api/proofs/recent', 200],
    ['/no/such/path', 404],
  ] as const) {
    const { ms, statuses } = await readMany(max, path);
    assert.deepEqual(statuses, new Set([status]));
    assert.ok(ms >= 900 && ms <= 1100, `${path}: ${max} reads in ${ms} ms`);
  }
  assert.deepEqual(await readMany(10, '/health/live'), { ms: 0, statuses: new Set([200]) });
  await letPass(it.clock, it.read('/llms.txt'));
  it.state.inFlight = 0;
  assert.ok((await readMany(max, '/llms.txt')).ms > 500, 'for a second more');
  it.clock.advance(2000);
  assert.equal((await readMany(max, '/llms.txt')).ms, 0);
});

test('pace: a read that would wait for over two seconds is refused', async () => {
  const it = given({ readsPerMinute: 1_000_000, inFlight: 1 });
  const { max } = LIMITS.readsBesideExecutions;
  const answers = Array.from({ length: 4 * max }, (_, n) => it.from(`198.51.100.${n % 250}`)('/llms.txt'));
  const statuses = (await letPass(it.clock, Promise.all(answers))).map(({ status }) => status);
  const served = statuses.filter((status) => status === 200).length;
  assert.ok(served >= 2 * max && served <= 2.2 * max, `${served}`);
  assert.equal(statuses.filter((status) => status === 429).length, 4 * max - served);
});

test('refused reads wait for a bounded number of others', async () => {
  const it = given();
  await readsUntilRefused(it);
  const answers = Array.from({ length: 1200 }, () => it.read('/api/trust'));
  await quiet();
  const closed = await Promise.all(answers.slice(1010));
  assert.ok(closed.every(({ status, headers }) => status === 429 && headers.get('connection') === 'close'));
  await letPass(it.clock, Promise.all(answers));
});
