// An operator rebuilds the read models while the real service serves reads and executions without a pause: no read fails.
// And a schema is changed: a new column, by a migration, in its own generation.
import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { integer, jsonb, pgTable, text } from 'drizzle-orm/pg-core';
import postgres from 'postgres';
import { rebuild } from '#projections/rebuild.ts';
import { READ_MODELS, type ReadModel } from '#projections/registry.ts';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { MIGRATIONS_FOLDER, tableLayout } from '#src/adapters/read-store/migrations.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { receiptJudge } from '#src/usecases/receipts/judge-receipt.ts';
import { runCli } from '#test/support/cli.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/postgres.ts';
import { primitives } from '#test/support/primitives.ts';
import { silent } from '#test/support/read-store.ts';
import { type Service, waitFor } from '#test/support/service.ts';
import { type Executed, execute, get, makeWorld, type World } from '#test/support/service-world.ts';

const needs = needsPostgres();
const JOBS = 60;

describe('a rebuild while the service runs', { ...needs, timeout: 150_000 }, () => {
  let server: PostgresServer;
  let world: World;
  let service: Service;
  let client: postgres.Sql;
  let env: { readonly DATA_DIR: string; readonly DATABASE_URL: string };
  const executed: Executed[] = [];

  before(async () => {
    server = await postgresServer();
    world = await makeWorld({ embedded: true });
    env = { DATA_DIR: world.dataDir, DATABASE_URL: await server.newDatabase() };
    client = postgres(env.DATABASE_URL, { max: 1, onnotice: () => undefined });
    service = await world.start(env);
    for (let n = 0; n < JOBS; n += 10) {
      const request = { url: world.target.url('/hook') };
      for (const { status, body } of await Promise.all(
        Array.from({ length: 10 }, () => execute(service, request)),
      )) {
        assert.equal(status, 200);
        executed.push(body);
      }
    }
  });
  after(async () => {
    await client.end({ timeout: 5 });
    await world.end();
    await server.remove();
  });

  /** Readers and one writer without a pause until `over`; returns the wrong answers. */
  function load() {
    const failed: string[] = [];
    const counted = { reads: 0, writes: 0 };
    let over = false;
    const reading = async (offset: number) => {
      for (let n = offset; !over; n++) {
        const { links } = executed[n % JOBS] ?? assert.fail();
        const paths = [links.job, links.receipt, links.verifyJob, links.proof].map(
          (link) => new URL(link ?? '').pathname,
        );
        const all = [...paths, '/api/proofs/recent', '/api/monitoring/executions', '/api/trust'];
        const path = all[n % all.length] ?? '/';
        const { status, body } = await get<{ stats?: { total: number } }>(`${service.url}${path}`);
        counted.reads++;
        if (status !== 200) failed.push(`${path}: ${status}`);
        // Incomplete rows would give a smaller count.
        if (body.stats !== undefined && body.stats.total < JOBS) failed.push(`only ${body.stats.total} jobs`);
      }
    };
    const writing = async () => {
      while (!over) {
        const { status, body } = await execute(service, { url: world.target.url('/during') });
        counted.writes++;
        if (status !== 200) failed.push(`execute: ${status}`);
        const job = await get(`${service.url}${new URL(body.links.job ?? '').pathname}`);
        if (job.status !== 200) failed.push(`its job: ${job.status}`);
      }
    };
    const running = [0, 1, 2, 3].map(reading).concat(writing());
    return {
      counted,
      async end() {
        over = true;
        await Promise.all(running);
        return failed;
      },
    };
  }

  test('under a steady load of reads and executions nothing fails, and rows are equal', async () => {
    await waitFor('the figures of all jobs', async () => {
      const { body } = await get<{ stats?: { total: number } }>(`${service.url}/api/monitoring/executions`);
      return body.stats?.total === JOBS;
    });
    const schema = async () =>
      (await client`select schema from read_model_generations where state = 'current'`)[0]?.schema;
    const before = await schema();
    const under = load();
    const swaps: unknown[] = [];
    for (let round = 0; round < 3; round++) {
      const { code, stdout, stderr } = await runCli(['rebuild', '--json'], { env });
      assert.equal(code, 0, stderr);
      swaps.push(JSON.parse(stdout).outcome);
      const checked = await runCli(['rebuild', '--check'], { env });
      assert.equal(checked.code, 0, checked.stdout + checked.stderr);
    }
    assert.deepEqual(await under.end(), []);
    assert.deepEqual(swaps, ['built', 'built', 'built']);
    assert.notEqual(await schema(), before, 'the tables are others');
    assert.ok(under.counted.reads > 100 && under.counted.writes > 3, JSON.stringify(under.counted));
  });

  test('a new column, built before its release is deployed: the old release reads and projects its own generation', async () => {
    const generation = join(world.folder, 'migrations', 'generation');
    cpSync(MIGRATIONS_FOLDER, join(world.folder, 'migrations'), { recursive: true });
    const journalFile = join(generation, 'meta/_journal.json');
    const journal = JSON.parse(readFileSync(journalFile, 'utf8'));
    const last = journal.entries.at(-1);
    const tag = `${String(last.idx + 1).padStart(4, '0')}_slowest`;
    journal.entries.push({ ...last, idx: last.idx + 1, when: last.when + 1, tag });
    writeFileSync(journalFile, JSON.stringify(journal));
    writeFileSync(
      join(generation, `${tag}.sql`),
      'ALTER TABLE "jobs" ADD COLUMN "slowest_ms" integer;--> statement-breakpoint\nCREATE INDEX "jobs_slowest" ON "jobs" USING btree ("slowest_ms");',
    );
    const [own] = await client`select schema from read_model_generations where state = 'current'`;
    const under = load();
    const log = await sqliteEventLog({ file: join(world.dataDir, 'events.db') });
    const store = postgresReadStore({ url: env.DATABASE_URL });
    const layout = tableLayout(join(world.folder, 'migrations'));
    const models = READ_MODELS.map((model) => (model.name === 'job' ? changedJobModel() : model));
    try {
      const judgeReceipt = receiptJudge({ log, primitives });
      const deps = { log, store: { ...store, layout }, judgeReceipt, clock: systemClock(), logger: silent };
      const { outcome, rows } = await rebuild(deps, { models });
      assert.equal(outcome, 'built');
      assert.ok((rows.jobs ?? 0) >= JOBS);
    } finally {
      await store.close();
      await log.close();
    }
    const { body } = await execute(service, { url: world.target.url('/after') });
    assert.equal((await get(`${service.url}${new URL(body.links.job ?? '').pathname}`)).status, 200);
    assert.deepEqual(await under.end(), []);
    const [next] = await client`select schema from read_model_generations
      where state = 'current' and schema <> ${own?.schema}`;
    const rows = await client`select id, slowest_ms, attempt_log from ${client(next?.schema)}.jobs`;
    assert.ok(rows.length >= JOBS);
    for (const { slowest_ms, attempt_log } of rows)
      assert.equal(slowest_ms, Math.ceil(attempt_log[0]?.timings.totalMs ?? 0));
  });
});

const modelNamed = (wanted: string): ReadModel =>
  READ_MODELS.find(({ name }) => name === wanted) ?? assert.fail();

/** The job model with a new column: the duration of the slowest attempt. */
function changedJobModel(): ReadModel {
  const model = modelNamed('job');
  const table = pgTable('jobs', {
    id: text().primaryKey(),
    status: text(),
    method: text(),
    mode: text(),
    attempts: integer(),
    attemptLog: jsonb('attempt_log'),
    targetCommitment: text('target_commitment'),
    requestHash: text('request_hash'),
    responseStatus: integer('response_status'),
    responseHash: text('response_hash'),
    errorCategory: text('error_category'),
    decisionId: text('decision_id'),
    receiptId: text('receipt_id'),
    payment: jsonb(),
    createdAt: text('created_at'),
    updatedAt: text('updated_at'),
    slowestMs: integer('slowest_ms'),
    position: text(),
  });
  return {
    ...model,
    version: model.version + 1,
    tables: [table],
    project: (event, facts) =>
      model.project(event, facts).map((change) => ({
        ...change,
        apply(row) {
          const next = change.apply(row);
          if (next === null) return null;
          const before = Number(row?.slowestMs ?? 0);
          const took = event.type === 'AttemptMade' ? Math.ceil(event.data.timings.totalMs) : 0;
          return { ...next, slowestMs: Math.max(before, took) };
        },
      })),
  };
}
