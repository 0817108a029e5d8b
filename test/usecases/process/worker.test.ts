import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault } from '#src/domain/refusal.ts';
import { Cancel } from '#src/lib/time.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { type Look, repeated, sharedPause, type Work, Worker } from '#src/usecases/process/worker.ts';
import { collectingLogger, manualClock, quiet } from '#test/support/world/fakes.ts';

const FAILED = { message: 'an item could not be looked at', fields: (item: string) => ({ item }) };

function working(work: Partial<Work<string>> & Pick<Work<string>, 'look'>) {
  const clock = manualClock();
  const logger = collectingLogger();
  const stopping = new Cancel();
  const worker = new Worker<string>(
    { clock, logger, stopping },
    { pauseMs: 1000, candidates: async () => ['a', 'b'], keyOf: (item) => item, failed: FAILED, ...work },
  );
  return { clock, logger, stopping, worker };
}

test('every candidate is looked at once a pass, however often it is named', async () => {
  const seen: string[] = [];
  const { worker } = working({
    candidates: async () => ['a', 'b', 'a'],
    async look(item) {
      seen.push(item);
      return 'over';
    },
  });
  assert.equal(await worker.pass(), true);
  assert.deepEqual(seen, ['a', 'b']);
});

test('an item that fails keeps no other from being looked at, and is repeated after growing pauses', async () => {
  const seen: string[] = [];
  const { clock, worker } = working({
    async look(item) {
      seen.push(item);
      if (item === 'a') throw new Error('broken');
      return 'later';
    },
    repeatMs: { first: 1000, most: 3000 },
  });
  for (let s = 0; s < 10; s++) {
    assert.equal(await worker.pass(), false);
    clock.advance(1000);
  }
  // At 0, 1, 3, 6 and 9 s.
  assert.equal(seen.filter((item) => item === 'a').length, 5);
  assert.equal(seen.filter((item) => item === 'b').length, 10);
  assert.equal(worker.failing, 1);
});

test('one line for each cause, however many items it concerns and however often; again after all was well', async () => {
  let isBroken = true;
  const { clock, logger, worker } = working({
    async look() {
      if (isBroken) throw new Error('broken');
      return 'later';
    },
  });
  for (let n = 0; n < 3; n++) {
    await worker.pass();
    clock.advance(300_000);
  }
  assert.deepEqual(
    logger.lines.map(({ level, message }) => [level, message]),
    [['bug', FAILED.message]],
  );
  isBroken = false;
  assert.equal(await worker.pass(), true);
  isBroken = true;
  await worker.pass();
  assert.equal(logger.lines.length, 2);
});

test('an unavailable part ends the pass without a line: its adapter reports it', async () => {
  for (const cause of [new EventLogUnavailable(), new Fault('read_models_unavailable', 'no rows')]) {
    const seen: string[] = [];
    const { logger, worker } = working({
      async look(item): Promise<Look> {
        seen.push(item);
        throw cause;
      },
    });
    assert.equal(await worker.pass(), false);
    assert.deepEqual([seen, logger.lines, worker.failing], [['a'], [], 0]);
    await assert.rejects(worker.sweep(), cause);
  }
});

test('a stream is watched from the first look on; again from 0 after a change, an outage, or a pass without it', async () => {
  let expected = 0n;
  let isUnavailable = false;
  let candidates = ['a'];
  const ages: number[] = [];
  const { clock, worker } = working({
    candidates: async () => candidates,
    async look(stream, watch) {
      if (isUnavailable) throw new EventLogUnavailable();
      ages.push(watch.unchangedFor({ stream, expected }));
      return 'later';
    },
  });
  const pass = async () => {
    await worker.pass();
    clock.advance(10);
  };
  await pass();
  await pass();
  expected = 1n;
  await pass();
  isUnavailable = true;
  await pass();
  isUnavailable = false;
  await pass();
  await pass();
  candidates = [];
  await pass();
  candidates = ['a'];
  await pass();
  assert.deepEqual(ages, [0, 10, 0, 0, 10, 0]);
});

test('passes follow each other after the pause until the process stops; a look in hand ends, no further one begins', async () => {
  let open = () => {};
  let passes = 0;
  const seen: string[] = [];
  const { clock, stopping, worker } = working({
    async candidates() {
      passes++;
      return ['a', 'b'];
    },
    look(item) {
      seen.push(item);
      return new Promise((resolve) => {
        open = () => resolve('later');
      });
    },
  });
  let isOver = false;
  const running = worker.run().then(() => {
    isOver = true;
  });
  for (const expected of ['a', 'b', 'a']) {
    await quiet();
    assert.equal(seen.at(-1), expected);
    if (passes === 2) break;
    open();
    await quiet();
    clock.advance(1000);
  }
  stopping.abort();
  await quiet();
  assert.equal(isOver, false);
  open();
  await running;
  assert.deepEqual([seen, passes], [['a', 'b', 'a'], 2]);
});

test('a worker that is woken looks at once', async () => {
  let passes = 0;
  const { stopping, worker } = working({
    async candidates() {
      passes++;
      return [];
    },
    look: async () => 'later',
  });
  const running = worker.run();
  await quiet();
  assert.equal(passes, 1);
  worker.wake();
  await quiet();
  assert.equal(passes, 2);
  stopping.abort();
  await running;
});

test('nothing is looked at while the worker is not ready, or its candidates fail', async () => {
  let isReady = false;
  const { logger, worker } = working({
    ready: async () => isReady,
    candidates: () => Promise.reject(new Error('broken')),
    look: () => Promise.reject(new Error('not looked at')),
  });
  assert.equal(await worker.pass(), false);
  assert.deepEqual(logger.lines, []);
  isReady = true;
  assert.equal(await worker.pass(), false);
  assert.equal(await worker.pass(), false);
  assert.deepEqual(
    logger.lines.map(({ level, fields }) => [level, String((fields as { cause: unknown }).cause)]),
    [['bug', 'Error: broken']],
  );
});

test('work that is one thing is repeated after its pause also where it failed, and its cause is logged once', async () => {
  const clock = manualClock();
  const logger = collectingLogger();
  const stopping = new Cancel();
  const completed: boolean[] = [];
  let runs = 0;
  const running = repeated(
    { clock, logger, stopping },
    {
      firstMs: 500,
      pauseMs(wasCompleted) {
        completed.push(wasCompleted);
        return 1000;
      },
      async run() {
        if (++runs < 3) throw new Error('broken');
      },
      failed: { message: 'it failed', level: 'warn' },
    },
  ).run();
  for (const ms of [500, 1000, 1000]) {
    await quiet();
    clock.advance(ms);
  }
  await quiet();
  stopping.abort();
  await running;
  assert.deepEqual([runs, completed], [3, [false, false, true]]);
  assert.deepEqual(
    logger.lines.map(({ level, message }) => [level, message]),
    [['warn', 'it failed']],
  );
});

test('pauses that are shared end in the same moments, whenever they begin', async () => {
  const clock = manualClock();
  const stopping = new Cancel();
  const seen: string[] = [];
  const work = (name: string) => {
    const deps = { clock, logger: collectingLogger(), stopping };
    const pauseMs = () => sharedPause(5000, clock);
    const run = async () => void seen.push(`${name} ${clock.monotonic()}`);
    return repeated(deps, { pauseMs, run, failed: { message: FAILED.message } }).run();
  };
  const keys = work('keys');
  await quiet();
  clock.advance(4700);
  const recovery = work('recovery');
  for (await quiet(); clock.monotonic() < 15_000; await quiet()) clock.advanceToNext();
  stopping.abort();
  await Promise.all([keys, recovery]);
  // A pause is no short moment: what begins at 4,700 rests beyond 5,000.
  const together = (at: number) => [`recovery ${at}`, `keys ${at}`];
  assert.deepEqual(seen, ['keys 0', 'recovery 4700', 'keys 5000', ...together(10_000), ...together(15_000)]);
});
