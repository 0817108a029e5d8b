// The status page: the data of the endpoint, for people; readable without a script, whatever is unavailable.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { sentenceOf } from '#src/domain/monitoring/conditions.ts';
import { Fault } from '#src/domain/refusal.ts';
import { duration, percent } from '#src/http/pages/status-page.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import {
  failureRecord,
  fakeWorld,
  type HttpWorld,
  JOB,
  monitoringOf,
  noDurations,
  stats,
} from '#test/support/world/http-deps.ts';

const NOW = Date.parse('2026-01-02T03:04:05.678Z');
const DAY = 86_400_000;

type Monitoring = HttpWorld['reads']['monitoring'];

const zero = { ...stats, total: 0, succeeded: 0, failed: 0, running: 0, lastUpdatedAt: null };
const NOTHING: Monitoring = monitoringOf({
  ...zero,
  recentTotal: 0,
  recentSucceeded: 0,
  recentFailed: 0,
  recentRunning: 0,
});

function world(changes: Parameters<typeof fakeWorld>[0] = {}) {
  return fakeWorld({ clock: { ...systemClock(), now: () => NOW }, ...changes });
}

async function asked(deps: HttpWorld, query = '') {
  const { status, headers, body } = await clientOf(deps).get(`/status${query}`);
  return { status, headers, text: String(body) };
}

/** The tiles, by name. */
const tilesOf = (text: string) =>
  Object.fromEntries(
    [...text.matchAll(/<dt>([^<]*)<\/dt><dd>([^<]*)<\/dd>/g)].map(([, name, figure]) => [name, figure]),
  );

test('status: the figures of the monitoring endpoint, in words, tiles and a table; few are not drawn', async () => {
  // Of the four executions three took 200 to 250 ms, and one 1.25 to 1.6 s.
  const durations = Object.assign(Array<number>(20).fill(0), { 10: 3, 18: 1 });
  const series: Monitoring['series'] = async (starts) => {
    const buckets = await noDurations()(starts);
    return buckets.map((bucket) => (bucket.succeeded > 0 ? { ...bucket, durations } : bucket));
  };
  const { status, headers, text } = await asked(
    world({
      reads: { monitoring: { ...monitoringOf(), series } },
      progress: { lag: () => ({ lagEvents: 1, lagMs: 12 }) },
    }),
  );
  assert.equal(status, 200);
  assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
  assert.equal(headers.get('cache-control'), 'public, max-age=5');
  assert.match(text, /<h1>Status: <span class="ok">ok<\/span><\/h1>/);
  const { Uptime, ...tiles } = tilesOf(text.replaceAll('\u00a0', ' '));
  assert.deepEqual(tiles, {
    Executions: '4',
    'Failure rate': '25 %',
    'Median duration': '225 ms',
    '95th percentile': '1.43 s',
    'Lag of the records': '12 ms',
    'In flight': '1',
  });
  assert.match(Uptime ?? '', /^[\d.]+ (ms|s)$/);
  assert.doesNotMatch(text, /<svg viewBox="0 0 360 200"|<details>/);
  const [, first = ''] = /<tbody>(.*?)<\/tbody>/s.exec(text) ?? [];
  assert.equal(
    first,
    '<tr><th scope="row"><time datetime="2026-01-02T03:00:00.000Z">2026-01-02 03:00</time></th><td class="num">3</td><td class="num">1</td><td class="num">225 ms</td><td class="num">1.43 s</td></tr>',
  );
});

test('status: many parts of the window with executions are drawn, with their figures as a table', async () => {
  const durations = Object.assign(Array<number>(20).fill(0), { 10: 3, 18: 1 });
  const series: Monitoring['series'] = async (starts) => {
    const buckets = await noDurations()(starts);
    return buckets.map((bucket, at) =>
      at < buckets.length - 8 ? bucket : { ...bucket, succeeded: 3, failed: 1, durations },
    );
  };
  const { text } = await asked(world({ reads: { monitoring: { ...monitoringOf(), series } } }));
  assert.equal(text.split('<svg viewBox="0 0 360 200" role="img"').length - 1, 3);
  assert.equal(text.split('<details>').length - 1, 1);
  assert.ok(text.includes('<title id="executions-title">Executions finished: at most 4 in 15 min</title>'));
  assert.ok(text.includes('<title id="failure-rate-title">Failure rate: at most 25 % in 15 min</title>'));
  assert.ok(text.includes('<title id="durations-title">Duration: at most 1.43 s in 15 min</title>'));
});

test('status: no script, no style attribute, nothing from elsewhere', async () => {
  const { text, headers } = await asked(world());
  assert.doesNotMatch(text, /<script|javascript:| on\w+=| style=|<iframe|<img|src=/i);
  assert.match(headers.get('content-security-policy') ?? '', /^default-src 'none'; style-src 'self';/);
  const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
  assert.equal(new Set(ids).size, ids.length, 'no id twice');
  for (const [, named = ''] of text.matchAll(/aria-labelledby="([^"]+)"/g))
    for (const id of named.split(' ')) assert.ok(ids.includes(id), id);
});

test('status: each reason for attention in plain words', async () => {
  const failing = { ...stats, recentSucceeded: 2, recentFailed: 2 };
  const { text } = await asked(
    world({
      reads: {
        receipt: { find: async () => null, countUnverified: async () => 1 },
        monitoring: monitoringOf(failing, { overdue: 1 }),
      },
      progress: { lag: () => ({ lagEvents: null, lagMs: 30_001 }) },
    }),
  );
  assert.match(text, /<h1>Status: <span class="attention">attention<\/span><\/h1>/);
  for (const words of [
    'More than 25 % of the executions that finished in this window failed.',
    'An execution has been running for longer than it may.',
    'A stored receipt does not verify.',
    'The read models lag the event log by over 30 s: new jobs and receipts are not shown.',
  ])
    assert.ok(text.includes(`<li>${words}</li>`), words);
});

test('status: what is wrong with a part is stated once, in the sentence of its condition', async () => {
  const lagging = sentenceOf('projections', 'lagging');
  const chain = sentenceOf('chain', 'no_answer');
  const { text } = await asked(
    world({
      progress: { lag: () => ({ lagEvents: null, lagMs: 30_001 }) },
      wrong: () => [lagging, chain],
    }),
  );
  for (const sentence of [lagging, chain])
    assert.equal(text.split(`<li>${sentence}</li>`).length, 2, sentence);
});

test('status: a service that has done nothing says so', async () => {
  const none = { recent: async () => [], recentFailures: async () => [] };
  const { status, text } = await asked(world({ reads: { monitoring: NOTHING, proof: none } }));
  assert.equal(status, 200);
  const tiles = tilesOf(text);
  assert.deepEqual(
    [tiles.Executions, tiles['Failure rate'], tiles['Median duration']],
    ['0', 'none', 'none'],
  );
  for (const words of [
    'No execution finished in this window.',
    'No execution failed in the last 24 hours.',
    'No event is recorded yet.',
  ])
    assert.ok(text.includes(words), words);
  assert.doesNotMatch(text, /NaN|Infinity|undefined|null/);
});

test('status: the window is chosen by links; the endpoint is asked for the same one', async () => {
  const deps = world({ reads: { monitoring: NOTHING } });
  const { text } = await asked(deps);
  const links = [...text.matchAll(/<a href="\/status\?windowMs=(\d+)"( aria-current="page")?>([^<]+)<\/a>/g)];
  assert.deepEqual(
    links.map(([, ms, current, name]) => [name, Number(ms), current !== undefined]),
    [
      ['1 hour', DAY / 24, false],
      ['24 hours', DAY, true],
      ['7 days', 7 * DAY, false],
      ['30 days', 30 * DAY, false],
    ],
  );
  for (const [, ms] of links) {
    const page = await asked(deps, `?windowMs=${ms}`);
    assert.equal(page.status, 200);
    assert.ok(page.text.includes(`<a href="/api/monitoring/executions?windowMs=${ms}">`));
  }
  assert.match((await asked(deps, '?windowMs=5400000')).text, /over the last 1 h 30 min/);
  // In whole buckets, of 5 minutes here.
  assert.match((await asked(deps, '?windowMs=7260001')).text, /over the last 2 h 5 min/);
});

test('status: another window is 400, never clamped', async () => {
  for (const query of ['?windowMs=59999', '?windowMs=2592000001', '?windowMs=1h', '?windowMs=']) {
    const { status, headers } = await asked(world(), query);
    assert.deepEqual([status, headers.get('cache-control')], [400, 'no-store']);
  }
  const accept = 'text/html,*/*;q=0.8';
  const page = await clientOf(world()).call('/status?windowMs=5', { headers: { accept } });
  assert.deepEqual([page.status, page.headers.get('content-type')], [400, 'text/html; charset=utf-8']);
  assert.match(await page.text(), /windowMs: Expected one integer from 60000 to .*<a href="\/status">/s);
});

test('status: recent failures link to their proofs, and their content is shown as text', async () => {
  const evil = `<img src=x onerror="alert('1')">`;
  const failures = [failureRecord(), failureRecord({ createdAt: evil, jobId: evil })];
  const proof = { recent: async () => [], recentFailures: async () => failures };
  const { text } = await asked(world({ reads: { proof } }));
  assert.ok(text.includes('The newest of the window'));
  assert.ok(text.includes(`<a href="/proof/${JOB}"><code>${JOB}</code></a>`));
  assert.ok(!text.includes('<img'));
});

test('status: read models that are away are a page with 503', async () => {
  const away = () =>
    Promise.reject(new Fault('read_models_unavailable', 'not available', { retryAfterSeconds: 7 }));
  const { status, headers, text } = await asked(
    world({ reads: { monitoring: { summary: away, totals: away, series: away } } }),
  );
  assert.equal(status, 503);
  assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
  assert.deepEqual([headers.get('retry-after'), headers.get('cache-control')], ['7', 'no-store']);
  for (const words of ['A receipt that you hold', '/.well-known/jwks.json', '/health'])
    assert.ok(text.includes(words), words);
});

test('status: any other failure is the fault that it is everywhere', async () => {
  const failing = async (error: Error) => {
    const totals = () => Promise.reject(error);
    return asked(world({ reads: { monitoring: { ...monitoringOf(), totals } } }));
  };
  const broken = await failing(new Error('secret'));
  assert.equal(broken.status, 500);
  assert.doesNotMatch(broken.text, /secret/);
  const logless = await failing(new Fault('event_log_unavailable', 'no log'));
  assert.deepEqual([logless.status, logless.headers.get('content-type')], [503, 'application/json']);
});

test('status: durations and shares in the units that matter', () => {
  const cases = [
    [0, '0 ms'],
    [0.25, '0.3 ms'],
    [999, '999 ms'],
    [1250, '1.25 s'],
    [59_990, '59.99 s'],
    [60_000, '1 min'],
    [200_000, '3 min 20 s'],
    [3_600_000, '1 h'],
    [5_400_000, '1 h 30 min'],
    [86_400_000 + 3_600_000, '1 d 1 h'],
  ] as const;
  for (const [ms, text] of cases) assert.equal(duration(ms), text);
  assert.deepEqual([percent(0), percent(0.3333), percent(1)], ['0 %', '33.3 %', '100 %']);
});
