// The test server behind TLS, with a user.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startEventStoreServer } from './eventstore-server.ts';
import { events, fresh, rejected, stored, withClient } from './eventstore-server-client.ts';
import { makeTestCa } from './test-ca.ts';

test('over TLS the right user is let in, a wrong one and none are not, and an unknown root is not believed', async () => {
  const credentials = { username: 'admin', password: 'chan:ge it' };
  const server = await startEventStoreServer({ tls: makeTestCa(), credentials });
  const stream = fresh('job');
  try {
    for (const url of [server.url, server.url.replace('esdb:', 'esdb+discover:')]) {
      await withClient(url, async (client) => {
        await client.appendToStream(stream, events(1));
        assert.equal((await stored(client, stream)).length, server.appends());
      });
    }
    const type = 'access-denied';
    for (const user of ['admin:wrong@', '']) {
      await withClient(server.url.replace(/\/\/.*@/, `//${user}`), async (client) => {
        await rejected(client.appendToStream(stream, events(1)), { type });
        await rejected(stored(client, stream), { type });
      });
    }
    await withClient(server.url.replace(/&tlsCAFile=.*/, ''), (client) =>
      assert.rejects(client.appendToStream(stream, events(1))),
    );
    assert.equal(server.appends(), 2);
  } finally {
    await server.end();
  }
});

test('over TLS a lost answer cuts the connection that it would have gone by', async () => {
  const server = await startEventStoreServer({ tls: makeTestCa() });
  try {
    await withClient(server.url, async (client) => {
      server.faults.loseAnswers(1);
      await assert.rejects(client.appendToStream(fresh('job'), events(1)));
      assert.equal(server.appends(), 1);
    });
  } finally {
    await server.end();
  }
});
