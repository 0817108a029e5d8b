import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkpointSigned } from '#test/support/given/given-events.ts';
import { afterOthers, lostAnswer, unavailable } from '#test/support/log/fakes-log.ts';
import { letPass } from '#test/support/world/fakes.ts';
import { given } from '#test/support/world/fakes-world.ts';
import {
  contradictions,
  deployment,
  keeper,
  ORIGIN,
  receipt,
  STREAM,
  sizes,
} from '#test/support/world/receipt-log-world.ts';

const PROMISE = { origin: ORIGIN, mmdSeconds: 3600 };

test('the first start with a key begins the log: a signed checkpoint of no leaves, named after the host', async () => {
  const common = deployment();
  const { checkpoints, logger } = await keeper(common);
  assert.deepEqual(
    common.log.events.map(({ stream, type, data }) => [stream, type, data.origin, data.size, data.root]),
    [[STREAM, 'CheckpointSigned', ORIGIN, '0', '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=']],
  );
  assert.deepEqual(await contradictions(common), []);
  assert.deepEqual(checkpoints.promised(), PROMISE);
  assert.equal(checkpoints.latest()?.note, common.log.events[0]?.data.note);
  assert.deepEqual(logger.lines, []);
});

test('a process without a checkpoint key begins no log, and promises nothing until another has', async () => {
  const common = deployment();
  const { checkpoints, look } = await keeper(common, { key: null });
  assert.deepEqual([common.log.events.length, checkpoints.promised(), checkpoints.latest()], [0, null, null]);
  await keeper(common);
  await look();
  assert.deepEqual(checkpoints.promised(), PROMISE);
  assert.equal(checkpoints.latest()?.size, 0);
});

test('a key that is added later begins the log', async () => {
  const common = deployment();
  const it = await keeper(common, { key: null });
  it.held.key = common.key;
  await it.checkpoints.begin('relay.example');
  assert.deepEqual(it.checkpoints.promised(), PROMISE);
});

test('the log keeps the name that it began with; a process of another host says so once', async () => {
  const common = deployment();
  await keeper(common);
  await receipt(common);
  const other = await keeper(common, { host: 'relay.example:8443' });
  assert.deepEqual(other.checkpoints.promised(), PROMISE);
  assert.equal(await other.look(), 'signed');
  assert.deepEqual(await contradictions(common), []);
  assert.deepEqual(
    other.logger.lines.map(({ level, fields }) => [level, fields]),
    [['warn', { named: ORIGIN, here: 'relay.example:8443/receipts' }]],
  );
});

test('two that begin at once: one checkpoint, and both know it', async () => {
  const common = deployment();
  let other: Awaited<ReturnType<typeof keeper>> | null = null;
  common.log.onNext(
    'CheckpointSigned',
    afterOthers(async () => {
      other = await keeper(common, { host: 'first.example' });
    }),
  );
  const { checkpoints } = await keeper(common);
  assert.deepEqual(sizes(common), [0]);
  assert.equal(checkpoints.promised()?.origin, 'first.example/receipts');
  assert.ok(other);
});

test('an unavailable log, or a lost answer, does not prevent the start; the next call begins it, once', async () => {
  for (const interception of [unavailable, lostAnswer]) {
    const common = deployment();
    common.log.onNext('CheckpointSigned', interception);
    const { checkpoints } = await keeper(common);
    assert.equal(checkpoints.promised(), null);
    await checkpoints.begin('relay.example');
    assert.deepEqual(checkpoints.promised(), PROMISE);
    assert.deepEqual(sizes(common), [0]);
  }
});

test('what was given out once stays the newest, whatever the log says later', async () => {
  const common = deployment();
  const it = await keeper(common);
  await receipt(common);
  await it.look();
  const newest = it.checkpoints.latest();
  assert.equal(newest?.size, 1);
  const restored = deployment();
  await keeper({ ...restored, key: common.key });
  const log = { ...common.log, readStream: restored.log.readStream };
  const after = await keeper({ ...common, log });
  assert.equal(after.checkpoints.latest()?.size, 0, 'a process that never saw it');
  Object.assign(common.log, { readStream: restored.log.readStream });
  await it.look(false);
  assert.deepEqual(it.checkpoints.latest(), newest);
});

test('an append of unknown fate is repeated until it is known; its checkpoint is known from then on', async () => {
  const common = deployment();
  const it = await keeper(common);
  await receipt(common);
  common.log.onNext('CheckpointSigned', lostAnswer);
  assert.equal(await letPass(it.clock, it.look()), 'signed');
  assert.deepEqual(sizes(common), [0, 1]);
  assert.equal(it.checkpoints.latest()?.size, 1);
});

test('an unreadable first checkpoint is not replaced: there is a log, and nothing is promised', async () => {
  const common = deployment();
  await given(common, STREAM, { ...checkpointSigned(), data: { ...checkpointSigned().data, size: '2' } });
  const { checkpoints } = await keeper(common);
  await checkpoints.begin('relay.example');
  assert.deepEqual([common.log.events.length, checkpoints.promised()], [1, null]);
  assert.equal(common.log.appends, 1, 'only the one that was given');
});

test('a checkpoint of another name is none of this log', async () => {
  const common = deployment();
  const it = await keeper(common);
  const stranger = deployment();
  const other = await keeper(stranger, { host: 'other.example' });
  await receipt(stranger);
  await other.look();
  const theirs = stranger.log.events.at(-1);
  assert.ok(theirs?.data.size === '1');
  await given(common, STREAM, { type: theirs.type, data: { ...theirs.data } });
  await it.look(false);
  assert.equal(it.checkpoints.latest()?.origin, ORIGIN);
});
