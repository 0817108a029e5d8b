import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firstComparison } from '#src/app/first-comparison.ts';
import { Cancel } from '#src/lib/time.ts';

/** `comparing`: whether another try makes sense, after each failed one. */
function scripted(...comparing: readonly boolean[]) {
  const seen: string[] = [];
  const answers = [...comparing];
  const comparison = {
    async open() {
      seen.push('open');
      if (answers.length > 0) throw new Error('not validated');
    },
    isComparing: () => answers.shift() === true,
    async look() {
      seen.push('look');
    },
  };
  return { seen, comparison };
}

test('rows that are validated: compared at once', async () => {
  const { seen, comparison } = scripted();
  await firstComparison(comparison, new Cancel());
  assert.deepEqual(seen, ['open', 'look']);
});

test('rows that take longer than a try to be compared with the log: waited for, then compared', async () => {
  const { seen, comparison } = scripted(true, true);
  await firstComparison(comparison, new Cancel());
  assert.deepEqual(seen, ['open', 'open', 'open', 'look']);
});

test('a database that does not answer: calls do not wait for it', async () => {
  const { seen, comparison } = scripted(false);
  await firstComparison(comparison, new Cancel());
  assert.deepEqual(seen, ['open']);
});

test('a comparison that fails is no failure of the start; one without an end ends with the process', async () => {
  const look = async () => {
    throw new Error('the log does not answer');
  };
  await firstComparison({ ...scripted().comparison, look }, new Cancel());
  const ending = new Cancel();
  const endless = firstComparison({ ...scripted().comparison, look: () => new Promise(() => {}) }, ending);
  ending.abort();
  await endless;
});
