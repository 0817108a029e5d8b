import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { type UndoneCounts, undoneReceipts } from '#src/usecases/receipts/revoked-receipts.ts';
import { letPass, manualClock } from '#test/support/fakes.ts';

const SINCE = '2026-01-01T03:04';
const SOME: UndoneCounts = { receipts: 3, recent: 1, latestVerifiedAt: null };
const good: KeyRecord = {
  keyId: 'k',
  purpose: 'receipt',
  x: 'x',
  notBefore: 0,
  notAfter: 600,
  compromisedAt: null,
};
const compromised = { ...good, compromisedAt: 60 };
const BY = [{ keyId: 'k', from: 60 }];

function setting(keys: readonly KeyRecord[], count = async (): Promise<UndoneCounts> => SOME) {
  const clock = manualClock();
  const state = { keys, count };
  const asked: unknown[] = [];
  const rows = {
    async countUndone(...given: readonly unknown[]) {
      asked.push(given);
      return await state.count();
    },
    async undoneOf(...given: readonly unknown[]) {
      asked.push(given);
      return ['b'];
    },
  };
  return {
    clock,
    state,
    asked,
    undone: undoneReceipts({ rows, keys: { atHand: () => state.keys }, clock }),
  };
}

test('while no key is compromised the rows are not asked', async () => {
  const { undone, asked } = setting([good]);
  assert.deepEqual([await undone.counts(SINCE), [...(await undone.among(['a', 'b']))]], [null, []]);
  assert.deepEqual(asked, []);
});

test('of a compromised key the rows return which receipts, and how many; an empty list is not queried', async () => {
  const { undone, asked } = setting([compromised]);
  assert.deepEqual([...(await undone.among([]))], []);
  assert.deepEqual([...(await undone.among(['a', 'b']))], ['b']);
  assert.deepEqual(await undone.counts(SINCE), SOME);
  assert.deepEqual(asked, [
    [BY, ['a', 'b']],
    [BY, SINCE],
  ]);
});

test('a compromised key that undoes no receipt in store changes no count', async () => {
  const { undone } = setting([compromised], async () => ({ ...SOME, receipts: 0 }));
  assert.equal(await undone.counts(SINCE), null);
});

test('a count is shared while it is made and for half a second; other keys or another minute are counted again', async () => {
  const { undone, asked, clock, state } = setting([compromised]);
  await Promise.all([undone.counts(SINCE), undone.counts(SINCE)]);
  clock.advance(499);
  await undone.counts(SINCE);
  assert.equal(asked.length, 1);
  clock.advance(1);
  await undone.counts(SINCE);
  assert.equal(asked.length, 2);
  state.keys = [{ ...compromised, compromisedAt: 59 }];
  await undone.counts(SINCE);
  await undone.counts('2026-01-01T03:05');
  assert.equal(asked.length, 4);
});

test('a count that took long is kept for twenty times as long', async () => {
  const world = setting([compromised]);
  const { undone, asked, clock, state } = world;
  state.count = async () => {
    await clock.sleep(100);
    return SOME;
  };
  await letPass(clock, undone.counts(SINCE));
  clock.advance(1999);
  await undone.counts(SINCE);
  assert.equal(asked.length, 1);
  clock.advance(1);
  await letPass(clock, undone.counts(SINCE));
  assert.equal(asked.length, 2);
});

test('a count that failed is not kept', async () => {
  const { undone, state } = setting([compromised], () => Promise.reject(new Error('away')));
  await assert.rejects(undone.counts(SINCE), { message: 'away' });
  state.count = async () => SOME;
  assert.deepEqual(await undone.counts(SINCE), SOME);
});
