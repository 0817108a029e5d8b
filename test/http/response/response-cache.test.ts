import assert from 'node:assert/strict';
import { test } from 'node:test';
import { figure } from '#src/http/response/response-cache.ts';
import { letPass, manualClock, quiet } from '#test/support/world/fakes.ts';

/** `tookMs`: how long each computation takes. */
function asked(tookMs = 0) {
  const clock = manualClock();
  const rows = { position: '1' as string | null };
  const computed: number[] = [];
  const begunAt: number[] = [];
  let running = 0;
  let most = 0;
  const ask = figure({ clock, progress: { position: () => rows.position } }, async (question: number) => {
    computed.push(question);
    begunAt.push(clock.monotonic());
    most = Math.max(most, ++running);
    try {
      if (tookMs > 0) await clock.sleep(tookMs);
      if (question < 0) throw new Error('unavailable');
      return { question };
    } finally {
      running -= 1;
    }
  });
  return { clock, rows, computed, begunAt, ask, most: () => most };
}

test('who asks the same while the rows stay as they are gets the same answer', async () => {
  const { ask, computed } = asked();
  const answers = await Promise.all([ask(1), ask(1), ask(2)]);
  assert.equal(answers[0], answers[1]);
  assert.equal(await ask(1), answers[0]);
  assert.deepEqual(computed, [1, 2]);
});

test('rows that changed are asked again at once', async () => {
  const { ask, rows, computed } = asked();
  await ask(1);
  rows.position = '2';
  await ask(1);
  assert.deepEqual(computed, [1, 1]);
});

test('an answer is kept for half a second', async () => {
  const { ask, clock, computed } = asked();
  await ask(1);
  clock.advance(499);
  await ask(1);
  assert.deepEqual(computed, [1]);
  clock.advance(1);
  await ask(1);
  assert.deepEqual(computed, [1, 1]);
});

test('what failed is asked again', async () => {
  const { ask, computed } = asked();
  await assert.rejects(ask(-1), /unavailable/);
  await assert.rejects(ask(-1), /unavailable/);
  assert.deepEqual(computed, [-1, -1]);
});

test('no more than 64 answers are kept: the oldest goes first', async () => {
  const { ask, computed } = asked();
  for (let question = 0; question <= 64; question++) await ask(question);
  assert.equal(computed.length, 65);
  await ask(64);
  await ask(1);
  assert.equal(computed.length, 65);
  await ask(0);
  assert.equal(computed.length, 66);
});

test('one computation at a time, for a tenth of the time at most, whatever is asked', async () => {
  const { ask, clock, begunAt, most } = asked(5);
  const answers = await letPass(clock, Promise.all([1, 2, 3, 1, 2, 3].map((question) => ask(question))));
  assert.deepEqual(
    answers.map(({ question }) => question),
    [1, 2, 3, 1, 2, 3],
  );
  assert.equal(most(), 1);
  assert.deepEqual(begunAt, [0, 50, 100]);
});

test('rows that change all the time are computed no more often', async () => {
  const { ask, clock, rows, computed } = asked(5);
  for (let step = 0; step < 1000; step++) {
    rows.position = String(step);
    void ask(step % 8);
    await quiet();
    clock.advance(1);
  }
  assert.ok(computed.length <= 20, `${computed.length} computations of 5 ms in a second`);
});

test('an answer that was begun before the rows changed is no answer after it', async () => {
  const { ask, clock, rows, computed } = asked(5);
  const before = ask(1);
  await quiet();
  rows.position = '2';
  const after = ask(1);
  assert.notEqual(await letPass(clock, before), await letPass(clock, after));
  assert.deepEqual(computed, [1, 1]);
});

test('a long computation is followed by half a second of rest at most', async () => {
  const { ask, clock, begunAt } = asked(3000);
  await letPass(clock, Promise.all([ask(1), ask(2)]));
  assert.deepEqual(begunAt, [0, 3500]);
});

test('calls behind a computation that fails fail with it: none waits for several limits of a store', async () => {
  const { ask, clock, computed } = asked(5000);
  const behind = [ask(-1), ask(1), ask(2)].map((answer) => assert.rejects(answer, /unavailable/));
  await letPass(clock, Promise.all(behind));
  assert.equal(clock.monotonic(), 5000);
  assert.deepEqual(computed, [-1]);
});
