import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedAnswer } from '#src/lib/shared-answer.ts';
import { manualClock } from '#test/support/world/fakes.ts';

test('all who ask meanwhile get one answer, and who asks within the time that it is kept', async () => {
  const clock = manualClock();
  const asked: ReturnType<typeof Promise.withResolvers<string>>[] = [];
  const answer = sharedAnswer(clock, 250, () => {
    const question = Promise.withResolvers<string>();
    asked.push(question);
    return question.promise;
  });
  const many = Array.from({ length: 1000 }, answer);
  assert.equal(asked.length, 1);
  clock.advance(60_000);
  many.push(answer());
  assert.equal(asked.length, 1, 'it is under way, however long that takes');
  asked[0]?.resolve('first');
  assert.deepEqual([...new Set(await Promise.all(many))], ['first']);
  clock.advance(249);
  assert.equal(await answer(), 'first');
  clock.advance(1);
  const again = answer();
  asked[1]?.resolve('second');
  assert.equal(await again, 'second');
  assert.equal(asked.length, 2);
});

test('a failure goes to those who wait for it, and is not kept', async () => {
  let failing = true;
  const answer = sharedAnswer(manualClock(), 250, async () => {
    if (failing) throw new Error('no answer');
    return 'well';
  });
  const waiting = [answer(), answer()];
  for (const one of waiting) await assert.rejects(one, /no answer/);
  failing = false;
  assert.equal(await answer(), 'well');
});
