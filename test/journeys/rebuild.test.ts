// A release with a new column, by a migration: its generation is built before it is deployed, while the old release serves
// its own.
import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { integer, jsonb, pgTable, text } from 'drizzle-orm/pg-core';
import postgres from 'postgres';
import type { ReadModel } from '#projections/model.ts';
import { rebuild } from '#projections/rebuild.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { MIGRATIONS_FOLDER, tableLayout } from '#src/adapters/read-store/migrations.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { receiptJudge } from '#src/usecases/receipts/judge-receipt.ts';
import { primitives } from '#test/support/given/primitives.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';
import { silent } from '#test/support/log/read-store.ts';
import type { Service } from '#test/support/process/service.ts';
import { execute, get, makeWorld, type World } from '#test/support/world/service-world.ts';

const needs = needsPostgres();
const JOBS = 10;

describe('a release that changes the schema', needs, () => {
  let server: PostgresServer;
  let world: World;
  let service: Service;
  let client: postgres.Sql;
  let env: { readonly DATA_DIR: string; readonly DATABASE_URL: string };

  before(async () => {
    server = await postgresServer();
    world = await makeWorld({ embedded: true });
    env = { DATA_DIR: world.dataDir, DATABASE_URL: await server.newDatabase() };
    client = postgres(env.DATABASE_URL, { max: 1, onnotice: () => undefined });
    service = await world.start(env);
    const calls = Array.from({ length: JOBS }, () => execute(service, { url: world.target.url('/hook') }));
    for (const { status } of await Promise.all(calls)) assert.equal(status, 200);
  });
  after(async () => {
    await client.end({ timeout: 5 });
    await world.end();
    await server.remove();
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
