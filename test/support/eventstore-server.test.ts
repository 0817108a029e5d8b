// Runs the contract on the test server and, if EVENTSTORE_URL is set, on a real server.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { jsonEvent } from '@eventstore/db-client';
import { describeEventStoreServer } from './eventstore-server.contract.ts';
import { type EventStoreServer, startEventStoreServer } from './eventstore-server.ts';
import { events, fresh, rejected, stored, subscribe, withClient } from './eventstore-server-client.ts';
import { withoutGoaway } from './eventstore-server-network.ts';
import { requirement } from './requirements.ts';
import { waitFor } from './service.ts';
import { makeTestCa } from './test-ca.ts';

const given = process.env.EVENTSTORE_URL;
let shared: Promise<EventStoreServer> | null = null;
after(async () => (await shared)?.end());

describeEventStoreServer({
  name: 'the test server',
  needs: { skip: false },
  url: async () => {
    shared ??= startEventStoreServer();
    return (await shared).url;
  },
});
describeEventStoreServer({
  name: 'a real server',
  needs: requirement('EventStoreDB', given !== undefined, 'no EVENTSTORE_URL'),
  url: async () => given ?? '',
});

// Fault injection of the test server, which a real server does not have.
/** Clients of one process share a connection where their options are equal. */
const APART = '&keepAliveInterval=11000';

/** Larger than the protocol's own messages. */
const LARGE = jsonEvent({ type: 'Large', data: 'x'.repeat(4_000) });

function switches(title: string, body: (server: EventStoreServer) => Promise<void>) {
  test(title, async () => {
    const server = await startEventStoreServer();
    try {
      await body(server);
    } finally {
      await server.end();
    }
  });
}

switches('after stop every call fails at once, and start comes back with what was stored', async (server) => {
  const stream = fresh('job');
  const given = events(2);
  await withClient(server.url, async (client) => {
    await client.appendToStream(stream, given, { expectedRevision: 'no_stream' });
    const heard = subscribe(client, {});
    await waitFor('the subscription to catch up', () => heard.words.includes('caughtUp'));
    assert.equal(server.subscriptions(), 1);
    await server.stop();
    await waitFor('the subscription to end', () => heard.words.at(-1)?.startsWith('error'));
    await waitFor('the server to notice', () => server.subscriptions() === 0 && server.connections() === 0);
    await assert.rejects(client.appendToStream(stream, events(1)));
  });
  await server.start();
  await withClient(server.url, async (client) => {
    await client.appendToStream(stream, given, { expectedRevision: 'no_stream' });
    assert.equal(server.appends(), 1);
    assert.equal((await stored(client, stream)).length, 2);
  });
});

switches('a frozen server takes appends, answers none, and stores them when it thaws', async (server) => {
  await withClient(server.url, async (client) => {
    await client.appendToStream(fresh('warm'), events(1));
    server.faults.freeze();
    const stream = fresh('job');
    const late = client.appendToStream(stream, events(1), { expectedRevision: 'no_stream' });
    // A second client is taken as well, and waits.
    await withClient(`${server.url}${APART}`, async (other) => {
      const second = other.appendToStream(fresh('job'), events(1));
      await waitFor('both connections', () => server.connections() === 2);
      assert.equal(server.appends(), 1);
      await server.faults.thaw();
      assert.equal((await second).nextExpectedRevision, 0n);
      assert.equal((await late).nextExpectedRevision, 0n);
      assert.equal(server.appends(), 3);
    });
  });
});

switches('an append whose caller has gone lands when the server thaws', async (server) => {
  const stream = fresh('job');
  await withClient(server.url, async (client) => {
    await client.appendToStream(fresh('warm'), events(1));
    server.faults.freeze();
    const lost = client.appendToStream(stream, [LARGE], { expectedRevision: 'no_stream' });
    await waitFor('the append to be sent', () => server.held() > LARGE.data.length);
    await client.dispose();
    await assert.rejects(lost);
  });
  assert.equal(server.appends(), 1);
  await server.faults.thaw();
  await waitFor('the late append', () => server.appends() === 2);
  assert.equal(server.events.at(-1)?.stream, stream);
});

switches('what a node had not got to when it was killed is lost', async (server) => {
  await withClient(server.url, async (client) => {
    await client.appendToStream(fresh('warm'), events(1));
    server.faults.freeze();
    server.faults.slow(200);
    const waiting = client.appendToStream(fresh('job'), [LARGE]);
    const failed = assert.rejects(waiting);
    await waitFor('the append to be sent', () => server.held() > LARGE.data.length);
    await server.faults.thaw();
    await server.stop();
    await failed;
  });
  await server.start();
  await withClient(server.url, async (client) => {
    // It waits as long as the killed one did, and began later.
    await client.appendToStream(fresh('job'), events(1));
    assert.equal(server.appends(), 2);
  });
});

switches('a lost answer is an append that was stored, and the repeat says so', async (server) => {
  await withClient(server.url, async (client) => {
    const [stream, given] = [fresh('job'), events(2)];
    server.faults.loseAnswers(1);
    await assert.rejects(client.appendToStream(stream, given, { expectedRevision: 'no_stream' }));
    assert.equal(server.appends(), 1);
    const repeat = await waitFor('the repeat', () =>
      client.appendToStream(stream, given, { expectedRevision: 'no_stream' }).catch(() => false as const),
    );
    assert.equal(repeat.nextExpectedRevision, 1n);
    assert.equal(server.appends(), 1);
  });
});

switches('a lost answer cuts its own connection alone', async (server) => {
  await withClient(`${server.url}${APART}`, (bystander) =>
    withClient(server.url, async (client) => {
      const heard = subscribe(bystander, {});
      await waitFor('the subscription to catch up', () => heard.words.includes('caughtUp'));
      server.faults.loseAnswers(1);
      const stream = fresh('job');
      await assert.rejects(client.appendToStream(stream, events(1)));
      await waitFor('the event', () => heard.words.includes(`${stream} 0`));
      assert.equal(server.subscriptions(), 1);
      await heard.end();
    }),
  );
});

switches('a refused append is a time-out that stored nothing', async (server) => {
  await withClient(server.url, async (client) => {
    server.faults.refuseAppends(1);
    await rejected(client.appendToStream(fresh('job'), events(1)), { type: 'timeout' });
    assert.equal(server.appends(), 0);
  });
});

switches('drop cuts calls and subscriptions, and takes new ones', async (server) => {
  await withClient(server.url, async (client) => {
    const heard = subscribe(client, {});
    await waitFor('the subscription to catch up', () => heard.words.includes('caughtUp'));
    server.faults.drop();
    await waitFor('the subscription to end', () => heard.words.at(-1)?.startsWith('error'));
    await waitFor('an append', () =>
      client.appendToStream(fresh('job'), events(1)).catch(() => false as const),
    );
  });
});

switches(
  'a consumer that is too slow is dropped with that reason and receives no more events',
  async (server) => {
    await withClient(server.url, async (client) => {
      const stream = fresh('job');
      const heard = subscribe(client, {});
      await waitFor('the subscription to catch up', () => heard.words.includes('caughtUp'));
      server.faults.dropSubscriptionsAfter(2);
      await client.appendToStream(stream, events(5));
      await waitFor('the end', () => heard.words.includes('error timeout'));
      // The client itself may lose what it read just before an error.
      const mine = heard.words.filter((word) => word.startsWith(stream));
      assert.deepEqual(mine, [`${stream} 0`, `${stream} 1`].slice(0, mine.length));
      server.faults.dropSubscriptionsAfter(null);
      const again = subscribe(client, {});
      await waitFor('the subscription to catch up', () => again.words.includes('caughtUp'));
      server.faults.dropSubscriptions();
      await waitFor('the end', () => again.words.at(-1) === 'error timeout');
      assert.equal(server.subscriptions(), 0);
    });
  },
);

switches('a slow server answers each call later', async (server) => {
  await withClient(server.url, async (client) => {
    await client.appendToStream(fresh('warm'), events(1));
    server.faults.slow(300);
    const begun = performance.now();
    await Promise.all([1, 2, 3].map(() => client.appendToStream(fresh('job'), events(1))));
    assert.ok(performance.now() - begun >= 295);
    assert.equal(server.appends(), 4);
  });
});

switches('what the system writes stands between the events of others', async (server) => {
  await withClient(server.url, async (client) => {
    const heard = subscribe(client, { fromPosition: 'end' });
    await waitFor('the subscription to catch up', () => heard.words.includes('caughtUp'));
    await client.appendToStream(fresh('job'), events(1));
    server.writeSystemEvents(2);
    await client.appendToStream(fresh('job'), events(1));
    await waitFor('all four', () => heard.words.length === 6);
    assert.deepEqual(
      heard.words.slice(2).map((word) => word[0]),
      ['j', '$', '$', 'j'],
    );
    assert.equal(server.appends(), 2);
    await heard.end();
  });
});

// The test server behind TLS, with a user.
test('over TLS only the right user is admitted, and an unknown root is refused', async () => {
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

test('over TLS a lost answer closes its connection', async () => {
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

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const frame = (type: number, body: Buffer) => {
  const header = Buffer.alloc(9);
  header.writeUIntBE(body.length, 0, 3);
  header[3] = type;
  return Buffer.concat([header, body]);
};
const SETTINGS = frame(4, Buffer.alloc(0));
/** Its content looks like the dropped frame. */
const DATA = frame(0, frame(7, Buffer.alloc(8)));
const GOAWAY = frame(7, Buffer.alloc(11, 7));

test('only GOAWAY frames are dropped, for every split of the bytes', () => {
  const sent = Buffer.concat([PREFACE, SETTINGS, DATA, GOAWAY, DATA, GOAWAY, GOAWAY, SETTINGS]);
  for (let size = 1; size <= sent.length; size++) {
    const pass = withoutGoaway();
    const got: Buffer[] = [];
    for (let at = 0; at < sent.length; at += size) got.push(pass(sent.subarray(at, at + size)));
    assert.deepEqual(Buffer.concat(got), Buffer.concat([PREFACE, SETTINGS, DATA, DATA, SETTINGS]), `${size}`);
  }
});
