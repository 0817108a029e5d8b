// relay rebuild: what an operator types, sees and gets for an exit, on PostgreSQL and on embedded read models.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import postgres from 'postgres';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { acquireProcessLock } from '#src/adapters/event-log/sqlite/process-lock.ts';
import { runCli, startCli } from '#test/support/cli.ts';
import { appendAll, decisionAppend, jobAppends, jobIdOf, PLAN } from '#test/support/job-histories.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/postgres.ts';
import { startService, waitFor } from '#test/support/service.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-rebuild-cli-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** In a minute that is over, and lately: a service purges what is old. */
const startedAtMs = Math.floor(Date.now() / 60_000) * 60_000 - 60_000;

/** A DATA_DIR with a log of so many jobs; five events each. */
async function dataWith(name: string, jobs: number) {
  const DATA_DIR = join(folder, name);
  const log = await sqliteEventLog({ file: join(DATA_DIR, 'events.db') });
  for (let seed = 0; seed < jobs; seed += 50) {
    const plans = Array.from({ length: Math.min(50, jobs - seed) }, (_, n) => ({
      ...PLAN,
      startedAtMs,
      seed: seed + n,
    }));
    await Promise.all(
      plans.map((plan) =>
        appendAll(log, [decisionAppend(plan.seed), ...jobAppends({ ...plan, paid: true })]),
      ),
    );
  }
  const events = (await log.readAll({ after: null, max: jobs * 10 })).length;
  await log.close();
  return { DATA_DIR, events };
}

test('a model that there is not: exit 2, and the names of those there are', async () => {
  const { code, stdout, stderr } = await runCli(['rebuild', 'job', 'jobs']);
  assert.deepEqual(
    [code, stdout, stderr],
    [
      2,
      '',
      'relay: there is no read model jobs; there are job, receipt, proof, monitoring, trust, transparency, decision\n',
    ],
  );
});

test('without a log it cannot run, and makes nothing', async () => {
  const DATA_DIR = join(folder, 'nowhere');
  for (const args of [[], ['--check'], ['job', '--json']]) {
    const { code, stdout, stderr } = await runCli(['rebuild', ...args], { env: { DATA_DIR } });
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^relay: there is no event log at [^\n]+\n$/);
  }
  assert.equal(existsSync(DATA_DIR), false);
});

test('a database that is away: exit 2 and one line, without the password', async () => {
  const { DATA_DIR } = await dataWith('away', 1);
  const env = { DATA_DIR, DATABASE_URL: 'postgres://relay:secret-word@127.0.0.1:1/relay' };
  const { code, stdout, stderr } = await runCli(['rebuild'], { env });
  assert.deepEqual([code, stdout], [2, '']);
  assert.match(stderr, /^relay: the database could not be used: [^\n]*\n$/);
  assert.doesNotMatch(stderr, /secret-word/);
});

test('embedded: rebuilt and compared while no service has them; held by one, exit 2 naming it', async () => {
  const { DATA_DIR, events } = await dataWith('embedded', 3);
  const env = { DATA_DIR };
  const unready = await runCli(['rebuild', '--check'], { env });
  assert.deepEqual([unready.code, unready.stdout], [2, '']);
  assert.match(unready.stderr, /^relay: the live rows are not told [^\n]+\n$/);
  const rebuilt = await runCli(['rebuild'], { env });
  assert.deepEqual(
    [rebuilt.code, rebuilt.stdout, rebuilt.stderr],
    [0, `✓ Rebuilt: 23 rows of 14 tables, told by ${events} events.\n`, ''],
  );
  const equal = await runCli(['rebuild', '--check', '--json'], { env });
  const { outcome, rows } = JSON.parse(equal.stdout);
  assert.deepEqual([equal.code, outcome, rows.jobs, rows.decisions], [0, 'equal', 3, 3]);

  const service = await startService(env);
  try {
    await waitFor('the rebuilt rows are read', async () => {
      return (await fetch(`${service.url}/api/jobs/${jobIdOf(2)}`)).status === 200;
    });
    for (const args of [[], ['--check']]) {
      const { code, stdout, stderr } = await runCli(['rebuild', ...args], { env });
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(
        stderr,
        new RegExp(`^relay: the embedded read models are in use by process ${service.pid}: [^\\n]+\\n$`),
      );
    }
    assert.equal((await fetch(`${service.url}/api/jobs/${jobIdOf(1)}`)).status, 200);
  } finally {
    assert.equal((await service.stop()).code, 0);
  }
});

test('embedded, where services on a database share the log: exit 2 and the setting that was forgotten', async () => {
  const { DATA_DIR } = await dataWith('shared', 1);
  const tenancy = await acquireProcessLock(join(DATA_DIR, 'events.lock'), 'shared');
  try {
    for (const args of [[], ['--check']]) {
      const { code, stdout, stderr } = await runCli(['rebuild', ...args], { env: { DATA_DIR } });
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, /^relay: other processes serve this event log: [^\n]+ set DATABASE_URL\n$/);
    }
    assert.equal(existsSync(join(DATA_DIR, 'read-models', 'pglite')), false, 'none are made');
  } finally {
    tenancy.release();
  }
  assert.equal((await runCli(['rebuild'], { env: { DATA_DIR } })).code, 0);
  assert.equal(existsSync(join(DATA_DIR, 'read-models', 'pglite')), true);
});

describe('on PostgreSQL', { ...needsPostgres(), timeout: 120_000 }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await postgresServer();
  });
  after(async () => {
    await server.remove();
  });

  test('rows edited by hand: --check exits 1 with keys and columns, no values; a rebuild mends them', async () => {
    const { DATA_DIR, events } = await dataWith('edited', 4);
    const env = { DATA_DIR, DATABASE_URL: await server.newDatabase() };
    const unmigrated = await runCli(['rebuild', '--check'], { env });
    assert.deepEqual([unmigrated.code, unmigrated.stdout], [2, '']);
    assert.match(unmigrated.stderr, /not at the schema of this version/);
    assert.equal((await runCli(['rebuild'], { env })).code, 0);
    const client = postgres(env.DATABASE_URL, { max: 1, onnotice: () => undefined });
    await client`update jobs set payment = '{"payer": "0xsomebody"}', attempts = 5 where id = ${jobIdOf(1)}`;
    await client`delete from proofs`;
    await client.end({ timeout: 5 });
    const checked = await runCli(['rebuild', '--check'], { env });
    assert.deepEqual([checked.code, checked.stderr], [1, '']);
    assert.doesNotMatch(checked.stdout, /0x/);
    const lines = checked.stdout.split('\n');
    assert.deepEqual(lines.slice(0, 3), [
      '✗ jobs: 1 row differs from what the log tells',
      `  ${jobIdOf(1)}: differs in attempts, payment`,
      '✗ proofs: 4 rows differ from what the log tells',
    ]);
    assert.equal(lines[3]?.endsWith(': is missing'), true);
    const some = await runCli(['rebuild', 'job', '--json'], { env });
    assert.deepEqual([some.code, some.stderr], [0, '']);
    assert.deepEqual(JSON.parse(some.stdout), {
      outcome: 'swapped',
      events,
      eventsHere: events,
      position: String(events).padStart(20, '0'),
      rows: { jobs: 4 },
      different: [],
      behindHorizon: null,
    });
    const still = await runCli(['rebuild', '--check', '--json'], { env });
    const { different } = JSON.parse(still.stdout);
    assert.deepEqual([still.code, different.length, different[0].table], [1, 1, 'proofs']);
    assert.equal((await runCli(['rebuild'], { env })).code, 0);
    assert.equal((await runCli(['rebuild', '--check'], { env })).code, 0);
  });

  test('with the rows of another log it cannot run, and names what to check; --other-log replaces them', async () => {
    const cluster = await dataWith('cluster', 3);
    const { DATA_DIR, events } = await dataWith('left-here', 1);
    const DATABASE_URL = await server.newDatabase();
    assert.equal((await runCli(['rebuild'], { env: { DATA_DIR: cluster.DATA_DIR, DATABASE_URL } })).code, 0);
    const env = { DATA_DIR, DATABASE_URL };
    for (const args of [[], ['--check'], ['job']]) {
      const { code, stdout, stderr } = await runCli(['rebuild', ...args], { env });
      assert.deepEqual([code, stdout], [2, '']);
      assert.equal(
        stderr,
        'relay: the live rows are of another event log: check EVENTSTORE_URL, DATA_DIR and DATABASE_URL, or say --other-log\n',
      );
    }
    const meant = await runCli(['rebuild', '--other-log', '--json'], { env });
    assert.deepEqual([meant.code, JSON.parse(meant.stdout).events], [0, events]);
  });

  test('--check says how many rows are behind the horizon of the purge', async () => {
    const { DATA_DIR, events } = await dataWith('late', 2);
    const env = { DATA_DIR, DATABASE_URL: await server.newDatabase() };
    assert.equal((await runCli(['rebuild'], { env })).code, 0);
    const client = postgres(env.DATABASE_URL, { max: 1, onnotice: () => undefined });
    await client`insert into retention values ('live', '2099-01-01T00:00:00.000Z', null, 0, 0)`;
    await client.end({ timeout: 5 });
    const { code, stdout, stderr } = await runCli(['rebuild', '--check'], { env });
    assert.deepEqual([code, stderr], [0, '']);
    const [equal, late] = stdout.split('\n');
    // Without two jobs and their proofs.
    assert.match(equal ?? '', new RegExp(`^✓ Equal: \\d+ rows of 14 tables, told by ${events} events\\.$`));
    assert.equal(
      late,
      '4 live rows are behind the horizon of the purge (jobs before 2099-01-01T00:00:00.000Z): the next purge or rebuild takes them away.',
    );
    const json = await runCli(['rebuild', '--check', '--json'], { env });
    const { behindHorizon } = JSON.parse(json.stdout);
    assert.deepEqual(behindHorizon, {
      jobsBefore: '2099-01-01T00:00:00.000Z',
      receiptsBefore: null,
      rows: 4,
    });
  });

  test('what may not be done here is one line, and exit 2', async () => {
    const { DATA_DIR } = await dataWith('refused', 1);
    const url = new URL(await server.newDatabase());
    const env = { DATA_DIR, DATABASE_URL: url.href };
    assert.equal((await runCli(['rebuild'], { env })).code, 0);
    const client = postgres(url.href, { max: 1, onnotice: () => undefined });
    const user = `relay_cli_${Date.now()}`;
    await client.unsafe(`create role ${user} login password 'known'; update model_versions set version = 99`);
    await client.end({ timeout: 5 });
    const refused = async (DATABASE_URL: string, args: readonly string[]) => {
      const { code, stdout, stderr } = await runCli(['rebuild', ...args], {
        env: { DATA_DIR, DATABASE_URL },
      });
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, /^relay: [^\n]+\n$/);
      return stderr;
    };
    for (const args of [[], ['--check'], ['proof']])
      assert.match(await refused(url.href, args), /a newer version of relay has told the rows \(/);
    url.username = user;
    url.password = 'known';
    assert.match(await refused(url.href, []), new RegExp(`the user ${user} may not make a schema in the`));
  });

  test('killed with -9 in the middle it goes on there, handles no event twice, and ends equal', async () => {
    const { DATA_DIR, events } = await dataWith('killed', 3000);
    const env = { DATA_DIR, DATABASE_URL: await server.newDatabase() };
    assert.equal((await runCli(['migrate'], { env })).code, 0);
    const client = postgres(env.DATABASE_URL, { max: 2, onnotice: () => undefined });
    const killed = startCli(['rebuild'], { env });
    const handled = await client.begin(async (tx) => {
      // While the projector's lock is held here, it cannot come to its end.
      await tx`select pg_advisory_xact_lock(125779768603953)`;
      const state = async () => {
        const there = await client`select to_regclass('public_rebuild.rebuild_state') is not null as there`;
        if (there[0]?.there !== true) return 0;
        const [row] =
          await client`select (counts ->> 'handled')::int as handled from public_rebuild.rebuild_state`;
        return Number(row?.handled ?? 0);
      };
      await waitFor('some events are handled', async () => (await state()) > 0);
      killed.signal('SIGKILL');
      await killed.ended;
      return await state();
    });
    assert.ok(handled > 0, 'some are');
    const jobs = await client`select count(*)::int as n from jobs`;
    assert.equal(jobs[0]?.n, 0, 'the live tables are as they were');
    const again = await runCli(['rebuild', '--json'], { env });
    assert.equal(again.stderr.split('\n')[0], `rebuilding: going on after ${handled} events`);
    const result = JSON.parse(again.stdout);
    assert.deepEqual(
      [again.code, result.outcome, result.events, result.eventsHere, result.rows.jobs],
      [0, 'swapped', events, events - handled, 3000],
    );
    const equal = await runCli(['rebuild', '--check', '--json'], { env });
    assert.deepEqual([equal.code, JSON.parse(equal.stdout).outcome], [0, 'equal']);
    assert.deepEqual([...(await client`select nspname from pg_namespace where nspname like '%rebuild'`)], []);
    await client.end({ timeout: 5 });
  });
});
