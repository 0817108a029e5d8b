import { equal, rejects } from 'node:assert/strict';
import { test } from 'node:test';
import { lazily } from '#src/lib/lazily.ts';

test('lazily: loaded once for all who ask; a failure is not kept', async () => {
  let loads = 0;
  let fails = true;
  const load = lazily(async () => {
    loads++;
    if (fails) throw new Error('too many open files');
    return loads;
  });
  await Promise.all([rejects(load()), rejects(load())]);
  equal(loads, 1);
  fails = false;
  equal(await load(), 2);
  equal(await load(), 2);
});
