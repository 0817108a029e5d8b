// relay rebuild: what an operator types, sees and gets for an exit, on PostgreSQL and on embedded read models.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import postgres from 'postgres';
import { acquireProcessLock } from '#src/adapters/event-log/sqlite/process-lock.ts';
import { pgliteReadStore } from '#src/adapters/read-store/pglite.ts';
import { appendAll, decisionAppend, jobAppends, jobIdOf, PLAN } from '#test/support/given/job-histories.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { silent } from '#test/support/log/read-store.ts';
import { runCli } from '#test/support/process/cli.ts';
import { startCli } from '#test/support/process/cli-process.ts';
import { waitFor } from '#test/support/process/service.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { withLog } from '#test/support/world/service-log.ts';

const folder = testFolder('rebuild-cli');

/** In a minute that is over, and lately: a service purges what is old. */
const startedAtMs = Math.floor(Date.now() / 60_000) * 60_000 - 60_000;

/** A DATA_DIR with a log of so many jobs; five events each. */
async function dataWith(name: string, jobs: number) {
  const DATA_DIR = join(folder, name);
  const plans = Array.from({ length: jobs }, (_, seed) => ({ ...PLAN, startedAtMs, seed, paid: true }));
  await withLog(DATA_DIR, (log) =>
    Promise.all(plans.map((plan) => appendAll(log, [decisionAppend(plan.seed), ...jobAppends(plan)]))),
  );
  return { DATA_DIR, events: 5 * jobs };
}

test('an unavailable database: exit 2 and one line, without the password', async () => {
  const { DATA_DIR } = await dataWith('away', 1);
  const env = { DATA_DIR, DATABASE_URL: 'postgres://relay:secret-word@127.0.0.1:1/relay' };
  const { code, stdout, stderr } = await runCli(['rebuild'], { env });
  assert.deepEqual([code, stdout], [2, '']);
  assert.match(stderr, /^relay: the database could not be used: [^\n]*\n$/);
  assert.doesNotMatch(stderr, /secret-word/);
});

test('embedded: rebuilt and compared while no service has them; held by another process, exit 2 naming it', async () => {
  const { DATA_DIR, events } = await dataWith('embedded', 3);
  const env = { DATA_DIR };
  const unready = await runCli(['rebuild', '--check'], { env });
  assert.deepEqual([unready.code, unready.stdout], [2, '']);
  assert.match(unready.stderr, /^relay: this release has no read models [^\n]+\n$/);
  const rebuilt = await runCli(['rebuild'], { env });
  assert.deepEqual(
    [rebuilt.code, rebuilt.stdout, rebuilt.stderr],
    [0, `✓ Rebuilt: 23 rows in 24 tables from ${events} events.\n`, ''],
  );
  const equal = await runCli(['rebuild', '--check', '--json'], { env });
  const { outcome, rows } = JSON.parse(equal.stdout);
  assert.deepEqual([equal.code, outcome, rows.jobs, rows.decisions], [0, 'equal', 3, 3]);

  const held = pgliteReadStore({ directory: join(DATA_DIR, 'read-models'), logger: silent });
  for (const args of [[], ['--check']]) {
    const { code, stdout, stderr } = await runCli(['rebuild', ...args], { env });
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(
      stderr,
      new RegExp(`^relay: the embedded read models are in use by process ${process.pid}: [^\\n]+\\n$`),
    );
  }
  await held.close();
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
  } finally {
    tenancy.release();
  }
});

/** Rows that have a position wait for the advisory lock 1 before it moves. */
const HELD_SECOND_BATCH = `
  create function public.wait_for_test() returns trigger language plpgsql as $$
  begin
    perform pg_advisory_xact_lock(1);
    return new;
  end $$;
  create function public.hold_batches() returns event_trigger language plpgsql as $$
  declare made record;
  begin
    for made in select * from pg_event_trigger_ddl_commands() where object_identity like '%.projection' loop
      execute format('create trigger held before update on %s for each row when (old.position is not null)
        execute function public.wait_for_test()', made.object_identity);
    end loop;
  end $$;
  create event trigger held_batches on ddl_command_end when tag in ('CREATE TABLE')
    execute function public.hold_batches()`;

describe('on PostgreSQL', { ...needsPostgres(), timeout: 300_000 }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await postgresServer();
  });
  after(async () => {
    await server.remove();
  });

  /** Of the current generation. */
  const connected = async (url: string) => {
    const shared = postgres(url, { max: 1, onnotice: () => undefined });
    const [row] = await shared`select schema from read_model_generations where state = 'current'`;
    await shared.end({ timeout: 5 });
    return postgres(url, { max: 2, onnotice: () => undefined, connection: { search_path: row?.schema } });
  };

  test('rows edited by hand: --check exits 1 with keys and columns, no values; a rebuild corrects them', async () => {
    const { DATA_DIR, events } = await dataWith('edited', 4);
    const env = { DATA_DIR, DATABASE_URL: await server.newDatabase() };
    const unbuilt = await runCli(['rebuild', '--check'], { env });
    assert.deepEqual([unbuilt.code, unbuilt.stdout], [2, '']);
    assert.match(unbuilt.stderr, /this release has no read models of this event log yet/);
    assert.equal((await runCli(['rebuild'], { env })).code, 0);
    const client = await connected(env.DATABASE_URL);
    await client`update jobs set payment = '{"payer": "0xsomebody"}', attempts = 5 where id = ${jobIdOf(1)}`;
    await client`delete from proofs`;
    await client.end({ timeout: 5 });
    const checked = await runCli(['rebuild', '--check'], { env });
    assert.deepEqual([checked.code, checked.stderr], [1, '']);
    assert.doesNotMatch(checked.stdout, /0x/);
    const lines = checked.stdout.split('\n');
    assert.deepEqual(lines.slice(0, 3), [
      '✗ jobs: 1 row differs from the event log',
      `  ${jobIdOf(1)}: differs in attempts, payment`,
      '✗ proofs: 4 rows differ from the event log',
    ]);
    assert.equal(lines[3]?.endsWith(': is missing'), true);
    const again = await runCli(['rebuild', '--json'], { env });
    assert.deepEqual([again.code, again.stderr], [0, '']);
    const { outcome, events: handled, rows, different } = JSON.parse(again.stdout);
    assert.deepEqual([outcome, handled, rows.jobs, different], ['built', events, 4, []]);
    assert.equal((await runCli(['rebuild', '--check'], { env })).code, 0);
    const pruned = await runCli(['rebuild', '--prune'], { env });
    assert.deepEqual(
      [pruned.code, pruned.stdout],
      [0, '✓ Nothing to drop: no read models of another release or log are unused for 10 minutes.\n'],
    );
  });

  test('a user who may not create a schema: exit 2 and one line', async () => {
    const { DATA_DIR } = await dataWith('refused', 1);
    const url = new URL(await server.newDatabase());
    const client = postgres(url.href, { max: 1, onnotice: () => undefined });
    const user = `relay_cli_${Date.now()}`;
    await client.unsafe(`create role ${user} login password 'known'`);
    await client.end({ timeout: 5 });
    assert.equal((await runCli(['migrate'], { env: { DATA_DIR, DATABASE_URL: url.href } })).code, 0);
    url.username = user;
    url.password = 'known';
    const { code, stdout, stderr } = await runCli(['rebuild'], { env: { DATA_DIR, DATABASE_URL: url.href } });
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^relay: [^\n]*permission denied[^\n]*\n$/);
  });

  test('killed with -9 in the middle it continues when it is run again, and ends equal', async () => {
    // More events than a batch has.
    const { DATA_DIR, events } = await dataWith('killed', 1000);
    const env = { DATA_DIR, DATABASE_URL: await server.newDatabase() };
    assert.equal((await runCli(['migrate'], { env })).code, 0);
    const client = postgres(env.DATABASE_URL, { max: 2, onnotice: () => undefined });
    await client.unsafe(HELD_SECOND_BATCH).simple();
    const holder = postgres(env.DATABASE_URL, { max: 1 });
    await holder`select pg_advisory_lock(1)`;
    const killed = startCli(['rebuild'], { env });
    const building = async () =>
      (await client`select schema from read_model_generations where state = 'building'`)[0]?.schema;
    const someHandled = async () => {
      const schema = await building();
      if (schema === undefined) return false;
      const [row] = await client`select position from ${client(schema)}.projection`;
      return row?.position !== null;
    };
    await waitFor('some events are handled', someHandled);
    killed.signal('SIGKILL');
    await killed.ended;
    await holder.end({ timeout: 5 });
    const again = await runCli(['rebuild', '--json'], { env });
    const result = JSON.parse(again.stdout);
    assert.deepEqual([again.code, result.outcome, result.rows.jobs], [0, 'built', 1000]);
    assert.ok(result.events > 0 && result.events < events, `${result.events} of ${events}`);
    const equal = await runCli(['rebuild', '--check', '--json'], { env });
    assert.deepEqual([equal.code, JSON.parse(equal.stdout).outcome], [0, 'equal']);
    assert.equal(await building(), undefined);
    await client.end({ timeout: 5 });
  });
});
