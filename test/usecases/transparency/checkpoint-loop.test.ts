import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { letPass, quiet } from '#test/support/world/fakes.ts';
import { deployment, type Keeper, keeper, receipt, sizes } from '#test/support/world/receipt-log-world.ts';

/** A process that keeps checkpoints; its rows contain its own checkpoints, too, so each is compared once more. */
async function world(prepare: (it: Keeper) => void = () => undefined) {
  const common = deployment();
  const it = await keeper(common);
  let looks = 0;
  it.rows.changed = (tree) => {
    looks++;
    return tree;
  };
  prepare(it);
  const kept = it.keep();
  /** Number of comparisons meanwhile. */
  async function seconds(count: number, each: () => Promise<void> = async () => undefined): Promise<number> {
    const before = looks;
    for (let n = 0; n < count; n++) {
      await each();
      it.clock.advance(1000);
      await quiet();
    }
    return looks - before;
  }
  return { common, it, seconds, looks: () => looks, stop: () => letPass(it.clock, kept.stop()) };
}

test('a receipt is covered within 2 s; rows that stand still are not compared, however long', async () => {
  const { common, seconds, stop } = await world();
  await receipt(common);
  await seconds(2);
  assert.deepEqual(sizes(common), [0, 1]);
  await seconds(2);
  assert.equal(await seconds(600), 0);
  await stop();
});

test('under load a checkpoint is signed every 2 s', async () => {
  const { common, seconds, stop } = await world();
  await seconds(10, () => receipt(common));
  assert.deepEqual(sizes(common), [0, 2, 4, 6, 8, 10]);
  await stop();
});

test('a process that follows compares and signs nothing until leaves wait 10 s: the projecting one may be dead', async () => {
  const { common, seconds, stop } = await world((it) => {
    it.rows.role = 'follows';
  });
  await receipt(common);
  assert.ok((await seconds(11)) > 0);
  assert.deepEqual(sizes(common), [0]);
  await seconds(1);
  assert.deepEqual(sizes(common), [0, 1]);
  await stop();
});

test('a log that could not be begun is begun later', async () => {
  const common = deployment();
  const it = await keeper(common, { key: null });
  const kept = it.keep();
  it.held.key = common.key;
  it.clock.advance(2000);
  await quiet();
  assert.deepEqual(sizes(common), [0]);
  await letPass(it.clock, kept.stop());
});

test('a failure is retried and logged once, not every time; an unavailable log is logged elsewhere', async () => {
  const failures = [new EventLogUnavailable(), new Error('broken'), new Error('broken')];
  const { common, it, seconds, stop } = await world((kept) => {
    kept.rows.changed = (tree) => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      return tree;
    };
  });
  await receipt(common);
  await seconds(2);
  assert.deepEqual([failures.length, it.logger.lines], [2, []]);
  await seconds(6);
  assert.deepEqual(sizes(common), [0, 1]);
  assert.deepEqual(
    it.logger.lines.map(({ level, message }) => [level, message]),
    [['warn', 'the transparency log cannot be read']],
  );
  await stop();
});

test('a signer that fails is asked again, and its checkpoint is signed then', async () => {
  const { common, it, seconds, stop } = await world();
  await receipt(common);
  const { key } = common;
  it.held.key = { ...key, sign: () => Promise.reject(new Error('no signature')) };
  await seconds(4);
  assert.deepEqual(sizes(common), [0]);
  it.held.key = key;
  await seconds(2);
  assert.deepEqual(sizes(common), [0, 1]);
  await stop();
});

test('an orderly end covers what no checkpoint is over yet, without waiting for its turn', async () => {
  const { common, seconds, stop } = await world();
  await receipt(common);
  await seconds(2);
  await receipt(common);
  await stop();
  assert.deepEqual(sizes(common), [0, 1, 2]);
});

test('an end with nothing to cover compares nothing; nor does one without a log, or of rows that are behind', async () => {
  const ends: ((it: Keeper) => void)[] = [
    () => undefined,
    ({ rows }) => Object.assign(rows, { reachedHead: async () => false }),
    ({ rows }) => Object.assign(rows, { role: 'follows' }),
  ];
  for (const [n, change] of ends.entries()) {
    const { common, it, seconds, stop, looks } = await world();
    await receipt(common);
    await seconds(4);
    if (n > 0) await receipt(common);
    change(it);
    const before = looks();
    await stop();
    assert.deepEqual([looks() - before, sizes(common)], [0, [0, 1]]);
  }
  const keyless = deployment();
  const it = await keeper(keyless, { key: null });
  it.rows.reachedHead = () => assert.fail('the rows of no log');
  await letPass(it.clock, it.keep().stop());
});

test('an end waits 2 s at most for parts that answer nothing', async () => {
  const { it, stop } = await world();
  it.rows.reachedHead = () => new Promise(() => undefined);
  const begun = it.clock.monotonic();
  await stop();
  assert.equal(it.clock.monotonic() - begun, 2000);
});
