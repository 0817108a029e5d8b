import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { keyDirectory } from '#src/usecases/signing-keys/key-ring.ts';
import { given, world } from '#test/support/fakes-world.ts';
import { at, commitment, keyActivated, keyRetired } from '#test/support/given-events.ts';

const KEYS = 'keys-relay';
const second = keyActivated({ keyId: commitment('m'), x: commitment('y') });

async function directory() {
  const it = world();
  await given(it, KEYS, keyActivated());
  let reads = 0;
  const log = {
    ...it.log,
    readStream: (stream: string) => {
      reads++;
      return it.log.readStream(stream);
    },
  };
  const keys = keyDirectory({ log, clock: it.clock });
  return {
    ...it,
    ids: async () => (await keys.list()).map(({ keyId }) => keyId),
    list: keys.list,
    reads: () => reads,
  };
}

test('every key that the log has announced, with what became of it', async () => {
  const it = await directory();
  await given(it, KEYS, second, keyRetired());
  const [first, other] = await it.list();
  assert.deepEqual([first?.keyId, first?.notAfter], [commitment('k'), Date.parse(at(600_000)) / 1000]);
  assert.deepEqual([other?.keyId, other?.notAfter], [commitment('m'), null]);
});

test('for 5 s the log is read once; a key announced meanwhile is seen at the fifth second', async () => {
  const it = await directory();
  for (let i = 0; i < 10; i++) await it.list();
  assert.equal(it.reads(), 1);
  await given(it, KEYS, second);
  it.clock.advance(4999);
  assert.deepEqual(await it.ids(), [commitment('k')]);
  it.clock.advance(1);
  assert.deepEqual(await it.ids(), [commitment('k'), commitment('m')]);
  assert.equal(it.reads(), 2);
});

test('age is measured by the monotonic clock', async () => {
  const it = await directory();
  await it.list();
  it.clock.skew(3_600_000);
  await it.list();
  assert.equal(it.reads(), 1);
});

test('if the log is unavailable the cached keys are returned, however old; without any it throws', async () => {
  const it = await directory();
  it.log.setAway(true);
  await assert.rejects(it.list(), EventLogUnavailable);
  it.log.setAway(false);
  await it.list();
  it.log.setAway(true);
  it.clock.advance(3_600_000);
  assert.deepEqual(await it.ids(), [commitment('k')]);
  it.log.setAway(false);
  await given(it, KEYS, second);
  assert.deepEqual(await it.ids(), [commitment('k'), commitment('m')]);
});

test('created with the keys just read it answers at once, also if the log is unavailable', async () => {
  const it = world();
  await given(it, KEYS, keyActivated());
  const read = await keyDirectory(it).list();
  const keys = keyDirectory(it, read);
  it.log.setAway(true);
  assert.deepEqual(await keys.list(), read);
  it.clock.advance(3_600_000);
  assert.deepEqual(await keys.list(), read);
  it.log.setAway(false);
  await given(it, KEYS, second);
  assert.equal((await keys.list()).length, 2);
});

test('refreshed it is as the log is now, and a slower read that began earlier takes nothing back', async () => {
  const it = world();
  await given(it, KEYS, keyActivated());
  const stale = await it.log.readStream(KEYS);
  const slow = Promise.withResolvers<typeof stale>();
  let reads = 0;
  const readStream = (stream: string) => (++reads === 1 ? slow.promise : it.log.readStream(stream));
  const keys = keyDirectory({ log: { ...it.log, readStream }, clock: it.clock });
  const early = keys.refresh();
  it.clock.advance(1000);
  await given(it, KEYS, second);
  assert.equal((await keys.refresh()).length, 2);
  slow.resolve(stale);
  assert.equal((await early).length, 2);
  assert.equal((await keys.list()).length, 2);
});
