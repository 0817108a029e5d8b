// Statements that PGlite runs prepared: they answer, fail and roll back as unprepared ones do.

import { deepEqual, equal, rejects } from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { PGlite } from '@electric-sql/pglite';
import { PgliteClient } from '#src/adapters/read-store/pglite-client.ts';
import { PGLITE_SETTINGS, unpackPgliteImage } from '#src/adapters/read-store/pglite-image.ts';

const scratch = mkdtempSync(join(tmpdir(), 'relay-pglite-client-'));
let plain: PGlite;
let pg: PGlite;
let prepared: PgliteClient;
before(async () => {
  plain = await opened('plain');
  pg = await opened('prepared');
  prepared = new PgliteClient(pg, () => undefined);
});
after(async () => {
  await plain.close();
  await pg.close();
  rmSync(scratch, { recursive: true, force: true });
});

async function opened(name: string): Promise<PGlite> {
  const dataDir = join(scratch, name);
  await unpackPgliteImage(dataDir);
  return PGlite.create({ dataDir, postgresqlconf: PGLITE_SETTINGS });
}

/** Several times: first unprepared, then prepared. */
const TIMES = [1, 2, 3];

test('pglite-client: rows, numbers of rows and types are those of an unprepared statement', async () => {
  const table =
    'create table kinds (id text primary key, n int, big bigint, yes boolean, doc jsonb, list int[], at timestamptz)';
  const statements: readonly (readonly [string, unknown[]])[] = [
    [table, []],
    [
      'insert into kinds values ($1, $2, $3, $4, $5, $6, $7)',
      ['a', 1, 2 ** 40, true, { b: [1, 'ü'] }, [1, 2], '2026-01-02T03:04:05Z'],
    ],
    ['insert into kinds (id) values ($1) on conflict (id) do nothing', ['b']],
    ['select * from kinds order by id', []],
    ['select id, n + $1::int as n from kinds where id = $2', [4, 'a']],
    ['update kinds set doc = $1 where id = $2 returning doc', [{ c: null }, 'b']],
    ['select id from kinds where id = $1', ['none']],
  ];
  for (const [text, values] of statements) {
    for (const time of text === table || text.startsWith('insert into kinds values') ? [1] : TIMES) {
      const wanted = await plain.query(text, values, { rowMode: 'array' });
      const found = await prepared.query(text, values, { rowMode: 'array' });
      deepEqual(found, wanted, `${text}, time ${time}`);
    }
  }
});

test('pglite-client: a statement that fails leaves the connection and the statement usable', async () => {
  await prepared.query('create table once (id int primary key)');
  for (const id of TIMES) await prepared.query('insert into once values ($1)', [id]);
  await rejects(prepared.query('insert into once values ($1)', [1]), { code: '23505' });
  await rejects(prepared.query('insert into once values ($1)', ['no number']), { code: '22P02' });
  await prepared.query('insert into once values ($1)', [4]);
  for (const _ of TIMES) await rejects(prepared.query('select * from nowhere'), { code: '42P01' });
  equal((await prepared.query('select * from once')).rows.length, 4);
});

test('pglite-client: a transaction that fails is rolled back, and no other statement gets into one', async () => {
  await prepared.query('create table booked (id int primary key)');
  const book = 'insert into booked values ($1)';
  for (const id of TIMES) {
    const failing = prepared.transaction(async (tx) => {
      await tx.query(book, [id]);
      await tx.query(book, [id]);
    });
    const beside = prepared.query('select count(*)::int as n from booked');
    await rejects(failing, { code: '23505' });
    deepEqual((await beside).rows, [{ n: 0 }]);
  }
  await prepared.transaction((tx) => tx.query(book, [1]));
  deepEqual((await prepared.query('select count(*)::int as n from booked')).rows, [{ n: 1 }]);
});

test('pglite-client: a prepared statement reads the schema that the search path names now', async () => {
  for (const name of ['one', 'two']) {
    await pg.exec(
      `create schema ${name}; create table ${name}.word (text text); insert into ${name}.word values ('${name}')`,
    );
  }
  for (const name of ['one', 'one', 'two', 'one']) {
    await pg.exec(`set search_path to ${name}`);
    deepEqual((await prepared.query('select text from word')).rows, [{ text: name }]);
  }
  await pg.exec('set search_path to public');
});
