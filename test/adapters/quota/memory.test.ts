import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryQuota } from '#src/adapters/quota/memory.ts';
import { quotaContract } from '#test/support/contract/quota.contract.ts';

quotaContract({
  name: 'in memory',
  needs: { skip: false },
  fresh: async () => memoryQuota(),
  end: async () => undefined,
});

test('quota: a window ends at its time, also if no timer could fire', async () => {
  const quota = memoryQuota();
  const short = { name: 'short', windowMs: 20, maxRequests: 1 };
  await quota.take(short, 'a');
  const over = Date.now() + 30;
  while (Date.now() < over); // nothing else runs meanwhile
  assert.equal((await quota.look(short, 'a')).allowed, true);
  assert.equal((await quota.take(short, 'a')).allowed, true);
});

test('quota: memory is bounded: the oldest windows are dropped for new ones', async () => {
  const quota = memoryQuota({ keysMax: 3 });
  const once = { name: 'once', windowMs: 60_000, maxRequests: 1 };
  for (const key of ['a', 'b', 'c', 'd']) assert.equal((await quota.take(once, key)).allowed, true);
  // a was dropped for d; b, c and d are still counted
  for (const key of ['b', 'c', 'd']) assert.equal((await quota.look(once, key)).allowed, false, key);
  assert.equal((await quota.look(once, 'a')).allowed, true);
});
