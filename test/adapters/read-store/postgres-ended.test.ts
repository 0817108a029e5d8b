// A server that takes every connection and ends it, as a balancer does while all behind it are away. No PostgreSQL.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { migrateOnce, postgresReadStore } from '#src/adapters/read-store/postgres.ts';

/** AuthenticationOk: the client is nearly in. */
const LET_IN = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0]);

/** Ends each connection at its first word, after `said`; the calls of `use` get its URL. */
async function endsAll(said: Buffer, use: (url: string) => Promise<void>): Promise<number> {
  let taken = 0;
  const server = createServer((client) => {
    taken++;
    client.on('error', () => undefined);
    client.once('data', () => client.end(said));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  await use(`postgres://relay@127.0.0.1:${address.port}/relay`);
  server.close();
  await once(server, 'close');
  return taken;
}

const ended = { code: 'CONNECTION_CLOSED' };

for (const [when, said] of [
  ['at once', Buffer.alloc(0)],
  ['nearly let in', LET_IN],
] as const) {
  test(`postgres: every connection ended ${when}: each try fails, after one connection`, async () => {
    const taken = await endsAll(said, async (url) => {
      await assert.rejects(migrateOnce(url), ended);
      const store = postgresReadStore({ url });
      await assert.rejects(store.shared(), ended);
      assert.deepEqual(await store.health(), { ok: false, refusal: 'CONNECTION_CLOSED' });
      await store.close();
    });
    assert.equal(taken, 3);
  });
}
