// Runs the contract on the test server and, if EVENTSTORE_URL is set, on a real server.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { requirement } from '#test/support/chain/requirements.ts';
import { describeEventStoreServer } from './eventstore-server.contract.ts';
import { type EventStoreServer, startEventStoreServer } from './eventstore-server.ts';
import { withoutGoaway } from './eventstore-server-network.ts';

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
