// The peers of P1: a relay as a person writes it in an afternoon, on the same framework. It calls what it is given on a
// new connection and answers with the target's status. With DURABLE=1 it also makes two synced SQLite commits a call,
// without grouping them, and signs one Ed25519 receipt: the records that ours keeps, without any of our promises.
import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { Elysia } from 'elysia';

const { DURABLE, DATABASE = '', CA_FILE = '' } = process.env;
const ca = readFileSync(CA_FILE, 'utf8');
const { privateKey } = generateKeyPairSync('ed25519');

const database = DURABLE === '1' ? new DatabaseSync(DATABASE) : null;
database?.exec(`pragma journal_mode = wal; pragma synchronous = full;
  create table jobs (id text primary key, started text not null);
  create table results (id text primary key, status integer not null, receipt text not null)`);
const started = database?.prepare('insert into jobs values (?, ?)');
const ended = database?.prepare('insert into results values (?, ?, ?)');

type Asked = { readonly url: string; readonly body: unknown };

const app = new Elysia().post('/execute', async ({ body }) => {
  const { url, body: sent } = body as Asked;
  const id = randomUUID();
  started?.run(id, new Date().toISOString());
  const response = await fetch(url, {
    method: 'POST',
    body: JSON.stringify(sent),
    headers: { 'content-type': 'application/json' },
    keepalive: false,
    tls: { ca },
  });
  await response.arrayBuffer();
  const payload = JSON.stringify({ id, status: response.status, at: new Date().toISOString() });
  const receipt = database === null ? '' : sign(null, Buffer.from(payload), privateKey).toString('base64url');
  ended?.run(id, response.status, `${payload}.${receipt}`);
  return { job: { id, status: response.ok ? 'succeeded' : 'failed' }, receipt };
});
app.listen({ hostname: '127.0.0.1', port: 0 });
console.log(JSON.stringify({ msg: 'listening', listen: `127.0.0.1:${app.server?.port}` }));
