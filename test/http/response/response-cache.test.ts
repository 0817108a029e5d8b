import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ofTheMoment } from '#src/http/response/response-cache.ts';
import { manualClock } from '#test/support/fakes.ts';

function asked() {
  const clock = manualClock();
  const rows = { position: '1' as string | null };
  const worked: number[] = [];
  const ask = ofTheMoment(
    { clock, progress: { position: () => rows.position } },
    async (question: number) => {
      worked.push(question);
      if (question < 0) throw new Error('away');
      return { question };
    },
  );
  return { clock, rows, worked, ask };
}

test('who asks the same while the rows stay as they are gets the same answer', async () => {
  const { ask, worked } = asked();
  const answers = await Promise.all([ask(1), ask(1), ask(2)]);
  assert.equal(answers[0], answers[1]);
  assert.equal(await ask(1), answers[0]);
  assert.deepEqual(worked, [1, 2]);
});

test('rows that changed are asked again at once', async () => {
  const { ask, rows, worked } = asked();
  await ask(1);
  rows.position = '2';
  await ask(1);
  assert.deepEqual(worked, [1, 1]);
});

test('an answer is kept for half a second', async () => {
  const { ask, clock, worked } = asked();
  await ask(1);
  clock.advance(499);
  await ask(1);
  assert.deepEqual(worked, [1]);
  clock.advance(1);
  await ask(1);
  assert.deepEqual(worked, [1, 1]);
});

test('what failed is asked again', async () => {
  const { ask, worked } = asked();
  await assert.rejects(ask(-1), /away/);
  await assert.rejects(ask(-1), /away/);
  assert.deepEqual(worked, [-1, -1]);
});

test('no more than 64 answers are kept: the oldest goes first', async () => {
  const { ask, worked } = asked();
  for (let question = 0; question <= 64; question++) await ask(question);
  assert.equal(worked.length, 65);
  await ask(64);
  await ask(1);
  assert.equal(worked.length, 65);
  await ask(0);
  assert.equal(worked.length, 66);
});
