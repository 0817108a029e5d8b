import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { keepCheckpoints } from '#src/usecases/transparency/checkpoint-loop.ts';
import type { Looked } from '#src/usecases/transparency/checkpoints.ts';
import { collectingLogger, letPass, manualClock, quiet } from '#test/support/fakes.ts';

/** A process with scripted rows; `looks`: each check with its second. */
function world() {
  const clock = manualClock();
  const logger = collectingLogger();
  const looks: string[] = [];
  const state = {
    position: null as string | null,
    role: 'projects' as 'projects' | 'follows' | null,
    answers: [] as (Looked | Error)[],
    origin: 'relay.example/receipts' as string | null,
    atHead: async () => true,
  };
  const view = (name: string) => async () => {
    looks.push(name);
    return 'busy' as const;
  };
  const { stop } = keepCheckpoints({
    clock,
    logger,
    rows: {
      position: () => state.position,
      role: () => state.role,
      reachedHead: () => state.atHead(),
    },
    locked: view('locked'),
    unlocked: view('unlocked'),
    checkpoints: {
      begin: async () => undefined,
      origin: () => state.origin,
      async look(show, sign) {
        const second = Math.round(clock.monotonic() / 1000);
        await show(async () => null);
        const answer = state.answers.shift() ?? (sign ? 'signed' : 'uncovered');
        const result = answer instanceof Error ? 'throws' : answer;
        looks.push(`${looks.pop()} at ${second}: ${result}`);
        if (answer instanceof Error) throw answer;
        return answer;
      },
    },
  });
  async function seconds(count: number, each: () => void = () => undefined): Promise<string[]> {
    for (let n = 0; n < count; n++) {
      each();
      await quiet();
      clock.advance(1000);
      await quiet();
    }
    return looks.splice(0);
  }
  return { clock, logger, state, seconds, stop: () => letPass(clock, stop()), looks };
}

test('rows that stand still are not looked at, however long', async () => {
  const { state, seconds, stop } = world();
  assert.deepEqual(await seconds(60), [], 'no rows yet');
  state.position = '1';
  assert.deepEqual(await seconds(1), ['locked at 61: signed']);
  assert.deepEqual(await seconds(600), []);
  await stop();
});

test('a receipt after a quiet time is covered within a second; under load every third second', async () => {
  const { state, seconds, stop } = world();
  let n = 0;
  const moving = () => {
    state.position = String(++n).padStart(4, '0');
  };
  assert.deepEqual(await seconds(10, moving), [
    'locked at 1: signed',
    'locked at 4: signed',
    'locked at 7: signed',
    'locked at 10: signed',
  ]);
  await stop();
});

test('where another holds the lock, or the tree is refused, it is looked again, though nothing moves; else it is not', async () => {
  for (const answer of ['overtaken', 'covered', 'behind'] as const) {
    const { state, seconds, stop } = world();
    state.position = '1';
    state.answers = ['busy', 'refused', answer];
    assert.deepEqual(await seconds(20), [
      'locked at 1: busy',
      'locked at 2: refused',
      `locked at 3: ${answer}`,
    ]);
    await stop();
  }
});

test('a process that follows looks without the lock and signs nothing', async () => {
  const { state, seconds, stop } = world();
  state.position = '1';
  state.role = 'follows';
  state.answers = ['covered'];
  assert.deepEqual(await seconds(30), ['unlocked at 1: covered']);
  assert.deepEqual(await stop(), undefined);
});

test('leaves that wait 10 s without a checkpoint are signed by a follower: the projecting process may be dead', async () => {
  const { state, seconds, stop } = world();
  state.position = '1';
  state.role = 'follows';
  assert.deepEqual(await seconds(30), ['unlocked at 1: uncovered', 'locked at 11: signed']);
  await stop();
});

test('rows that cannot be reached are not looked at', async () => {
  const { state, seconds, stop } = world();
  state.position = '1';
  state.role = null;
  assert.deepEqual(await seconds(10), []);
  await stop();
});

test('a failure is retried and logged once, not every second; an unavailable log is logged elsewhere', async () => {
  const { state, seconds, logger, stop } = world();
  state.position = '1';
  state.answers = [new EventLogUnavailable(), new Error('broken'), new Error('broken')];
  assert.deepEqual(await seconds(1), ['locked at 1: throws']);
  assert.deepEqual(logger.lines, []);
  assert.deepEqual(await seconds(3), ['locked at 2: throws', 'locked at 3: throws', 'locked at 4: signed']);
  assert.deepEqual(
    logger.lines.map(({ level, message }) => [level, message]),
    [['warn', 'the transparency log cannot be read']],
  );
  await stop();
});

test('an orderly end covers what no checkpoint is over yet, without waiting for its turn', async () => {
  const { state, seconds, stop, looks } = world();
  state.position = '1';
  await seconds(1);
  state.position = '2';
  await stop();
  assert.deepEqual(looks, ['locked at 1: signed']);
});

test('an end with nothing to cover asks nothing; nor does one without a log, or of rows that are behind', async () => {
  const ends: ((state: ReturnType<typeof world>['state']) => void)[] = [
    () => undefined,
    (state) => Object.assign(state, { position: '2', origin: null }),
    (state) => Object.assign(state, { position: '2', atHead: async () => false }),
    (state) => Object.assign(state, { position: '2', role: 'follows' }),
  ];
  for (const change of ends) {
    const { state, seconds, stop, looks } = world();
    state.position = '1';
    await seconds(1);
    change(state);
    await stop();
    assert.deepEqual(looks, []);
  }
});

test('an end waits 2 s at most for parts that answer nothing', async () => {
  const { state, clock, stop } = world();
  state.atHead = () => new Promise(() => undefined);
  const begun = clock.monotonic();
  await stop();
  assert.equal(clock.monotonic() - begun, 2000);
});
