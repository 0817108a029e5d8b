// The file of the event log is damaged: a byte of an event while the service runs, a page while it is down. Health, metrics,
// alert, log, callers, the commands and SIGTERM are looked at, and that the repaired file is well again.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { assertReplays, hitsOf } from '#test/support/given/fault-words.ts';
import { LONG } from '#test/support/given/property-runs.ts';
import {
  flipByte,
  hideInIndex,
  offsetOf,
  offsetsOf,
  PAGE_BYTES,
  pageTypeAt,
  reindex,
  zeroPageAt,
} from '#test/support/log/damaged-file.ts';
import { runCli } from '#test/support/process/cli.ts';
import { waitFor } from '#test/support/process/service.ts';
import {
  ALTERED_MAIN,
  assertLogged,
  assertStops,
  passThrough,
  type Seen,
  type Watched,
} from '#test/support/world/health-states.ts';
import { assertStands } from '#test/support/world/service-stands.ts';
import { type Executed, execute, get, makeWorld, type World } from '#test/support/world/service-world.ts';

const DAMAGED: Seen = {
  status: 200,
  part: 'eventLog',
  reason: 'damaged_events',
  message:
    /^1 event cannot be read as it was written: revision 0 of stream claim-\S+, position \d+: .*put back a backup/,
  alert: 'RelayEventsDamaged',
  logged: {
    level: 'error',
    msg: /^the event log has damage: what needs it fails, other calls are executed$/,
  },
  call: [200],
};

const INDEX_DAMAGED: Seen = {
  status: 503,
  part: 'eventLog',
  reason: 'damaged',
  message: /^The file of the event log is damaged: no call is executed/,
  alert: 'RelayEventLogDown',
  logged: {
    level: 'error',
    msg: /^The (?:file of the )?event log (?:is damaged|accepts no events): no call is executed\./,
    cause: /its index lacks revision 0 of stream claim-/,
  },
  call: [503, 'event_log_unavailable', /nothing was sent/],
};

/** How often all events are read. */
const OFTEN = { TEST_SCRUB_MS: '200' };

describe('a damaged file of the event log', () => {
  let world: World;
  let it: Watched;
  let file: string;
  /** A call with a key, and its claim in the log. */
  let known: { readonly call: { url: string; idempotencyKey: string }; readonly answer: Executed };
  let claim: { readonly id: string; readonly stream: string };
  let calls = 0;

  before(async () => {
    world = await makeWorld({ embedded: true, spawning: { script: ALTERED_MAIN } });
    file = join(world.dataDir, 'events.db');
    const service = await world.start(OFTEN);
    const next = () => ({ url: world.target.url('/call'), idempotencyKey: `call-${++calls}` });
    it = { service, start: () => world.start(OFTEN), call: (of) => execute(of, next()) };
    // So that other pages than the one with the key follow and precede the events of the start.
    for (let n = 0; n < 10; n++) await it.call(service);
    const call = { url: world.target.url('/known'), idempotencyKey: 'known' };
    known = { call, answer: (await execute(service, call)).body };
    for (let n = 0; n < 10; n++) await it.call(service);
    claim = claimOf(known.answer.job.id);
  });
  after(() => world?.end());

  /** What a foreign connection finds; all that is stored is in the file itself then. */
  function claimOf(jobId: string): typeof claim {
    const foreign = new DatabaseSync(file, { timeout: 20_000 });
    foreign.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    const row = foreign
      .prepare("SELECT id, stream FROM events WHERE type = 'IdempotencyKeyClaimed' AND data ->> 'jobId' = ?")
      .get(jobId);
    foreign.close();
    return { id: String(row?.id), stream: String(row?.stream) };
  }
  const relay = (...args: string[]) => runCli(args, { env: { DATA_DIR: world.dataDir } });
  const flip = () => flipByte(file, offsetOf(file, claim.id.slice(1)));
  const unflip = () => flipByte(file, offsetOf(file, flippedTail()));
  const flippedTail = () => String.fromCharCode(claim.id.charCodeAt(1) ^ 1) + claim.id.slice(2);

  test('a byte changes while the service runs: the scrub finds it, and other calls are executed', async () => {
    await passThrough(it, {
      name: 'a changed byte',
      made: 'running',
      make: flip,
      seen: DAMAGED,
      repaired: 'stopped',
      repair: unflip,
    });
    await assertReplays(it.service, known.call, known.answer);
  });

  if (LONG)
    test('the index hides an answered call: once that is found, no start executes calls until it is repaired', async () => {
      const mark = `${file}.damaged`;
      await passThrough(it, {
        name: 'a damaged index',
        made: 'stopped',
        async make() {
          assert.deepEqual(claimOf(known.answer.job.id), claim, 'all is in the file itself');
          hideInIndex(file, claim.stream);
          const { code, stdout } = await relay('audit', '--integrity');
          assert.equal(code, 1);
          assert.match(stdout, new RegExp(`event_unindexed +${claim.stream} +0 `));
          assert.ok(existsSync(mark));
        },
        seen: INDEX_DAMAGED,
        repaired: 'stopped',
        repair: () => reindex(file),
      });
      assert.ok(!existsSync(mark));
      await assertReplays(it.service, known.call, known.answer);
      assert.equal(hitsOf(world, '/known'), 1);
    });

  test('a page is lost while the service is down: its events are named, what needs them fails, all else works', async () => {
    await assertStops(it.service);
    const whole = readFileSync(file);
    const offset = offsetOf(file, claim.id);
    assert.equal(pageTypeAt(file, offset), 13, 'a leaf of the rows');
    zeroPageAt(file, offset);
    it.service = await it.start();
    const { url } = it.service;
    const { status, body } = await waitFor('health names the damage', async () => {
      const health = await get<{ checks: { eventLog: { reason?: string; message?: string } } }>(
        `${url}/health`,
      );
      return health.body.checks.eventLog.reason !== undefined && health;
    });
    assert.deepEqual([status, body.checks.eventLog.reason], [200, 'damaged_events']);
    assert.match(
      body.checks.eventLog.message ?? '',
      /^\d+ events cannot be read .* revision \d+ of stream \S+, position/,
    );
    await assertLogged(it.service, DAMAGED.logged);

    const repeated = await execute(it.service, known.call);
    const { error } = repeated.body as unknown as { error: { code: string; message: string } };
    assert.deepEqual([repeated.status, error.code], [503, 'event_log_unavailable']);
    assert.match(
      error.message,
      new RegExp(`^The event log is damaged at revision 0 of stream ${claim.stream}, .*nothing was sent`),
    );
    assert.equal(repeated.headers.get('retry-after'), '60');
    assert.equal(hitsOf(world, '/known'), 1);
    assert.equal((await it.call(it.service)).status, 200);

    await assertStops(it.service);

    // The operator puts back what the page contained; what was appended since is in other pages.
    const repaired = readFileSync(file);
    const start = offset - (offset % PAGE_BYTES);
    repaired.set(whole.subarray(start, start + PAGE_BYTES), start);
    writeFileSync(file, repaired);
    it.service = await it.start();
    await waitFor(
      'every part is ok',
      async () => (await get<{ ok: boolean }>(`${it.service.url}/health`)).body.ok,
    );
    await assertReplays(it.service, known.call, known.answer);
    await assertStands(it.service, known.answer);
    assert.equal(hitsOf(world, '/known'), 1);
    assert.equal((await relay('audit', '--integrity')).code, 0);
    await assertStops(it.service);
  });

  test('the event that a start needs is damaged: refused with one line that names it', async () => {
    const foreign = new DatabaseSync(file);
    // Both columns follow each other in the row; the id alone is in the metadata of the next event too.
    const row = foreign.prepare('SELECT id || type AS text FROM events WHERE position = 1').get();
    foreign.close();
    // SQLite leaves a copy of the first rows behind when it divides their page.
    for (const offset of offsetsOf(file, String(row?.text))) flipByte(file, offset);
    await assert.rejects(world.start({}, 'listening'), (error: unknown) => {
      assert.match(
        String(error),
        /ended \(2\).*the event log is damaged at revision 0 of stream \S+, position 1: .*put back a backup\n?$/s,
      );
      return true;
    });
    const { code, stdout } = await relay('audit', '--integrity');
    assert.equal(code, 1);
    assert.match(stdout, /event_damaged +\S+ +0 /);
  });
});
