import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { keyDirectory } from '#src/usecases/signing-keys/key-ring.ts';
import { at, commitment, keyActivated, keyRetired } from '#test/support/given/given-events.ts';
import { given, world } from '#test/support/world/fakes-world.ts';

const KEYS = 'keys-relay';
const second = keyActivated({ keyId: commitment('m'), x: commitment('y') });

test('every key that the log has announced, with what became of it', async () => {
  const it = world();
  await given(it, KEYS, keyActivated());
  await given(it, KEYS, second, keyRetired());
  const keys = keyDirectory(it, []);
  const [first, other] = await keys.refresh();
  assert.deepEqual([first?.keyId, first?.notAfter], [commitment('k'), Date.parse(at(600_000)) / 1000]);
  assert.deepEqual([other?.keyId, other?.notAfter], [commitment('m'), null]);
  assert.deepEqual(keys.list(), [first, other]);
});

test('if the log is unavailable the keys are those read last', async () => {
  const it = world();
  await given(it, KEYS, keyActivated());
  const known = await keyDirectory(it, []).refresh();
  const keys = keyDirectory(it, known);
  it.log.setAway(true);
  await assert.rejects(keys.refresh(), EventLogUnavailable);
  assert.deepEqual(keys.list(), known);
  it.log.setAway(false);
  await given(it, KEYS, second);
  await keys.refresh();
  assert.equal(keys.list().length, 2);
});
