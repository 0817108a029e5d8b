import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type InPlace, judgeRestore } from '#src/domain/backup/manifest.ts';

const backup = { id: 'log-1', events: 10, treeSize: 4, keyIds: ['a', 'b'], findings: 0 };
const nothing: InPlace = { log: null, checkpointSize: null, keys: null };
const keys = { isSameSecret: true, keyIds: ['a', 'b'], logId: 'log-1', hasSameKeys: true };
const log = { id: 'log-1', events: 12, isInBackup: false };
const judged = (found: Partial<InPlace>) => {
  const { impossible, losses } = judgeRestore({ ...nothing, ...found }, backup);
  return [impossible.length, losses.length];
};

test('restore: where nothing is, and over what the backup contains', () => {
  assert.deepEqual(judged({}), [0, 0]);
  assert.deepEqual(judged({ log: { ...log, events: 9, isInBackup: true }, checkpointSize: 4, keys }), [0, 0]);
  assert.deepEqual(judged({ log: { id: null, events: 0, isInBackup: true } }), [0, 0]);
  assert.deepEqual(judged({ keys: { ...keys, keyIds: ['a'], hasSameKeys: false } }), [0, 0]);
});

test('restore: in place of a log whose events cannot be read', () => {
  assert.deepEqual(judged({ log: 'unreadable', keys }), [0, 0]);
});

test('restore: events, checkpoints and keys that the backup lacks are losses', () => {
  assert.deepEqual(judged({ log }), [0, 1]);
  assert.deepEqual(judged({ log: { ...log, events: 8 } }), [0, 1], 'another continuation of an older backup');
  assert.deepEqual(judged({ checkpointSize: 5 }), [0, 1]);
  assert.deepEqual(judged({ log: 'unreadable', checkpointSize: 5 }), [0, 1]);
  assert.deepEqual(judged({ keys: { ...keys, keyIds: ['a', 'b', 'c'] } }), [0, 1]);
});

test('restore: never over another log, beside the keys of another, or beside another secret', () => {
  assert.deepEqual(judged({ log: { ...log, id: 'log-2' } }), [1, 0]);
  assert.deepEqual(judged({ keys: { ...keys, logId: 'log-2' } }), [1, 0]);
  assert.deepEqual(judged({ keys: { ...keys, isSameSecret: false } }), [1, 0]);
});
