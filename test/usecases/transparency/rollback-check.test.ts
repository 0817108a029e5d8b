// What is kept outside of the log: the word against one that was restored from a backup.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { testKey } from '#test/support/given/primitives.ts';
import { faultyLog } from '#test/support/log/fakes-log.ts';
import {
  deployment,
  keeper,
  keepOf,
  type MemoryKeep,
  receipt,
  sizes,
} from '#test/support/world/receipt-log-world.ts';

const sizeIn = ({ note }: MemoryKeep) => parseCheckpoint(note ?? '')?.size ?? null;

/** A log with a checkpoint over three receipts, and the log as it was with one. */
async function restored() {
  const common = deployment();
  const keep = keepOf();
  const it = await keeper(common, { checkpointKeep: keep });
  await receipt(common);
  assert.equal(await it.look(), 'signed');
  const older = common.log.events.length;
  await receipt(common);
  await receipt(common);
  assert.equal(await it.look(), 'signed');
  assert.equal(sizeIn(keep), 3);
  const log = faultyLog();
  for (const { stream, revision, id, type, data, metadata } of common.log.events.slice(0, older))
    await log.append(stream, revision === 0n ? 'no_stream' : revision - 1n, [{ id, type, data, metadata }]);
  return { common: { ...common, log }, keep, newest: it.checkpoints.latest() };
}

test('every checkpoint is kept, once: the first, one that is signed here, one that another has signed', async () => {
  const common = deployment();
  const [keep, theirs] = [keepOf(), keepOf()];
  const it = await keeper(common, { checkpointKeep: keep });
  assert.deepEqual([sizeIn(keep), keep.writes], [0, 1]);
  const other = await keeper(common, { checkpointKeep: theirs });
  assert.equal(sizeIn(theirs), 0);
  await receipt(common);
  await it.look();
  assert.equal(keep.note, it.checkpoints.latest()?.note);
  for (let n = 0; n < 3; n++) await other.look(false);
  await it.look();
  assert.deepEqual([sizeIn(theirs), theirs.writes, keep.writes], [1, 2, 2]);
});

test('a log that was restored from a backup signs nothing while a newer checkpoint is kept, and says where', async () => {
  const { common, keep, newest } = await restored();
  const it = await keeper(common, { checkpointKeep: keep });
  assert.equal(it.checkpoints.latest()?.note, newest?.note);
  assert.equal(it.checkpoints.isWhole(), false, 'known at the start, without rows');
  for (let n = 0; n < 5; n++) await receipt(common, 50 + n);
  assert.equal(await it.look(), 'refuse');
  assert.equal(it.checkpoints.standing()?.problem, 'checkpoint_forgotten');
  assert.deepEqual([sizes(common), keep.note], [[0, 1], newest?.note]);
  const [{ message = '', level = '' } = {}, ...more] = it.logger.lines;
  assert.deepEqual([level, more], ['error', []]);
  assert.match(message, /lacks events that this relay acknowledged.* It is kept in the place: removing that/);
  const both = await keeper(common, { checkpointKeep: keep });
  both.rows.elsewhere = [newest?.note ?? ''];
  assert.equal(await both.look(), 'refuse');
  assert.match(
    both.logger.lines[0]?.message ?? '',
    /It is kept in the place/,
    'not in the rows, where both are',
  );
  keep.note = null;
  assert.equal(await it.look(), 'refuse', 'what this process knows it knows');
  const after = await keeper(common, { checkpointKeep: keep });
  assert.equal(after.checkpoints.isWhole(), true);
  assert.deepEqual([await after.look(), sizes(common)], ['signed', [0, 1, 6]]);
  assert.equal(sizeIn(keep), 6);
});

test('also a log that begins again under the same name', async () => {
  const { common, keep } = await restored();
  const restarted = { ...common, log: faultyLog() };
  const it = await keeper(restarted, { checkpointKeep: keep });
  await receipt(restarted);
  assert.deepEqual([await it.look(), sizes(restarted)], ['refuse', [0]]);
});

test('a file with no checkpoint of this log, or of an unknown key, is logged once and left unchanged', async () => {
  const { common, keep } = await restored();
  const note = keep.note ?? '';
  const renamed = keepOf();
  await keeper({ ...common, log: faultyLog() }, { checkpointKeep: renamed, host: 'other.example' });
  for (const content of ['', 'garbage', note.replace('\n3\n', '\n9\n'), renamed.note ?? '']) {
    const odd = keepOf(content);
    const it = await keeper({ ...common, log: faultyLog() }, { checkpointKeep: odd });
    assert.equal(it.checkpoints.latest()?.size, 0, content);
    assert.deepEqual([odd.note, odd.writes], [content, 0]);
    assert.deepEqual(
      it.logger.lines.map(({ level, message }) => [level, message]),
      [
        [
          'warn',
          'The file of the newest checkpoint contains none of this transparency log: it is left unchanged, and none is kept. It is the place.',
        ],
      ],
    );
  }
  const unknown = await keeper(common, {
    checkpointKeep: keepOf(note),
    keys: [testKey({ purpose: 'checkpoint' })],
  });
  assert.equal(unknown.checkpoints.latest()?.size, 1);
});

test('of a key that was compromised since it counts, too: it was given out', async () => {
  const { common, keep } = await restored();
  const { key } = common;
  const it = await keeper(common, {
    checkpointKeep: keep,
    keys: [{ ...key, record: { ...key.record, compromisedAt: 1 } }],
  });
  assert.equal(it.checkpoints.latest()?.size, 3);
});

test('a checkpoint of the log that no key of ours has signed is not kept', async () => {
  const common = deployment();
  const keep = keepOf();
  const stranger = await keeper({ ...common, key: testKey({ purpose: 'checkpoint' }) });
  await receipt(common);
  assert.equal(await stranger.look(), 'signed');
  const it = await keeper(common, { checkpointKeep: keep });
  assert.deepEqual([it.checkpoints.latest()?.size, keep.note], [1, null]);
});

test('a larger checkpoint that another process keeps there refuses the next signature, and is not replaced', async () => {
  const { common, newest } = await restored();
  const shared = keepOf();
  const it = await keeper(common, { checkpointKeep: shared });
  await receipt(common);
  shared.note = newest?.note ?? '';
  assert.equal(await it.look(), 'refuse');
  assert.deepEqual([sizes(common), sizeIn(shared)], [[0, 1], 3]);
});

test('what somebody else put there later is left unchanged, and checkpoints are signed', async () => {
  const common = deployment();
  const keep = keepOf();
  const it = await keeper(common, { checkpointKeep: keep });
  keep.note = 'garbage';
  await receipt(common);
  assert.equal(await it.look(), 'signed');
  assert.deepEqual([keep.note, keep.writes, it.logger.lines.length], ['garbage', 1, 1]);
});

test('what cannot be kept is a warning, once until it can: checkpoints are signed all the same', async () => {
  const common = deployment();
  const keep = keepOf();
  const it = await keeper(common, { checkpointKeep: keep });
  keep.broken = true;
  for (const size of [1, 2]) {
    await receipt(common);
    assert.equal(await it.look(), 'signed');
    assert.deepEqual([it.checkpoints.latest()?.size, sizeIn(keep)], [size, 0]);
  }
  keep.broken = false;
  await receipt(common);
  await it.look();
  assert.equal(sizeIn(keep), 3);
  const unreadable = { ...keepOf(), read: () => Promise.reject(new Error('no')) };
  const blind = await keeper(common, { checkpointKeep: unreadable });
  assert.equal(blind.checkpoints.latest()?.size, 3);
  assert.deepEqual(
    [it, blind].map(({ logger }) => logger.lines.map(({ level, message }) => [level, message]).slice(0, 2)),
    [
      [
        [
          'warn',
          'The file of the newest checkpoint cannot be written: the newest checkpoint is not kept. It is the place.',
        ],
        ['info', 'the newest checkpoint is kept again'],
      ],
      [
        [
          'warn',
          'The file of the newest checkpoint cannot be read: it cannot prove that the event log was restored from a backup. It is the place.',
        ],
        [
          'warn',
          'The file of the newest checkpoint cannot be written: the newest checkpoint is not kept. It is the place.',
        ],
      ],
    ],
  );
});

test('a note that other rows keep counts as one of the log: a larger one, or another of the same size', async () => {
  const { common, newest } = await restored();
  const note = newest?.note ?? '';
  const it = await keeper(common, { checkpointKeep: null });
  it.rows.elsewhere = ['garbage'];
  assert.equal(await it.look(), 'rest');
  assert.equal(it.checkpoints.latest()?.size, 1);
  it.rows.elsewhere = ['garbage', note];
  assert.equal(await it.look(), 'refuse');
  assert.equal(it.checkpoints.latest()?.size, 3);
  const place = /It is kept in another generation of the read models, which .* drops: removing that/;
  assert.match(it.logger.lines.at(-1)?.message ?? '', place);
  const rowless = await keeper(common, { checkpointKeep: null });
  await rowless.checkpoints.compareKept([note]);
  assert.equal(rowless.checkpoints.isWhole(), false, 'known before any rows are read');
  const same = await keeper(common, { checkpointKeep: null });
  for (let n = 0; n < 2; n++) await receipt(common, 70 + n);
  assert.equal(await same.look(), 'signed');
  same.rows.elsewhere = [note];
  assert.equal(await same.look(), 'refuse');
});
