import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { postgresVault } from '#src/adapters/vault/postgres.ts';
import { vaultContract } from '#test/support/contract/vault.contract.ts';
import { hashWith } from '#test/support/given/primitives.ts';
import { needsPostgres, type PostgresServer, postgresServer } from '#test/support/log/postgres.ts';

const needs = needsPostgres();
let server: PostgresServer;
let url: string;
const stores: ReturnType<typeof postgresReadStore>[] = [];
const open = async () => {
  const store = postgresReadStore({ url, connections: 2 });
  stores.push(store);
  // A hundred purchases wait for two connections: no limit of time decides this test.
  return postgresVault({ open: () => store.shared(), keyedHash: hashWith('secret'), answerMs: 100_000 });
};

before(async () => {
  if (needs.skip) return;
  server = await postgresServer();
  url = await server.newDatabase();
});
after(async () => {
  if (needs.skip) return;
  for (const store of stores) await store.close();
  await server.remove();
});

vaultContract({ name: 'in Postgres', needs, open, again: open, end: async () => undefined });

test('its clock is that of Postgres', needs, async () => {
  const vault = await open();
  const now = await vault.now();
  assert.ok(now !== null && Math.abs(now - Date.now()) < 60_000);
});
