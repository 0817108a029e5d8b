import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { type ChainedEvent, eventChain } from '#src/domain/receipt/payload.ts';
import { JOB_EVENTS, recorded } from '#test/support/given/given-receipt.ts';

/** A second implementation of the definition: names written in order, data sorted by a replacer. */
function again(events: readonly ChainedEvent[]): string {
  const sorted = (_: string, value: unknown) =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  const link = events.reduce((previous, { data, id, revision, stream, type }) => {
    const json = `{"data":${JSON.stringify(data, sorted)},"id":"${id}","revision":"${revision}","stream":"${stream}","type":"${type}"}`;
    return createHash('sha256').update(previous).update(json, 'utf8').digest();
  }, Buffer.alloc(32));
  return link.toString('base64url');
}

test('the chain matches its definition, link by link', async () => {
  const events = recorded(JOB_EVENTS);
  for (let n = 0; n <= events.length; n++) {
    assert.equal(eventChain(events.slice(0, n)), again(events.slice(0, n)));
  }
});

test('the chain of no events is 32 zero bytes', async () => {
  assert.equal(eventChain([]), 'A'.repeat(43));
});

test('metadata, position and time of storage are left out; the order of names in data does not matter', async () => {
  const events = recorded(JOB_EVENTS);
  const dressed = events.map((event) => ({
    ...event,
    data: Object.fromEntries(Object.entries(event.data).reverse()),
    metadata: { $correlationId: 'x' },
    position: '1',
    created: 'later',
  }));
  assert.equal(eventChain(dressed), eventChain(events));
});
