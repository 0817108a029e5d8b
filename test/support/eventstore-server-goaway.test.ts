import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutGoaway } from './eventstore-server-goaway.ts';

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const frame = (type: number, body: Buffer) => {
  const header = Buffer.alloc(9);
  header.writeUIntBE(body.length, 0, 3);
  header[3] = type;
  return Buffer.concat([header, body]);
};
const SETTINGS = frame(4, Buffer.alloc(0));
/** Its content looks like the frame that is left out. */
const DATA = frame(0, frame(7, Buffer.alloc(8)));
const GOAWAY = frame(7, Buffer.alloc(11, 7));

test('a GOAWAY is left out and nothing else, however the bytes are cut', () => {
  const sent = Buffer.concat([PREFACE, SETTINGS, DATA, GOAWAY, DATA, GOAWAY, GOAWAY, SETTINGS]);
  for (let size = 1; size <= sent.length; size++) {
    const pass = withoutGoaway();
    const got: Buffer[] = [];
    for (let at = 0; at < sent.length; at += size) got.push(pass(sent.subarray(at, at + size)));
    assert.deepEqual(Buffer.concat(got), Buffer.concat([PREFACE, SETTINGS, DATA, DATA, SETTINGS]), `${size}`);
  }
});
