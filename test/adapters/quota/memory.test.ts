import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryQuota } from '#src/adapters/quota/memory.ts';
import type { QuotaState } from '#src/ports/quota.ts';

const rule = { name: 'calls', windowMs: 60_000, maxRequests: 3 };
const outcome = ({ allowed, limit, remaining }: QuotaState) => ({ allowed, limit, remaining });

test('quota: takes up to the limit and refuses beyond it, until the window ends', async () => {
  const quota = memoryQuota();
  const states = [];
  for (let i = 0; i < 4; i++) states.push(await quota.take(rule, 'a'));
  assert.deepEqual(states.map(outcome), [
    { allowed: true, limit: 3, remaining: 2 },
    { allowed: true, limit: 3, remaining: 1 },
    { allowed: true, limit: 3, remaining: 0 },
    { allowed: false, limit: 3, remaining: 0 },
  ]);
  for (const { resetMs } of states) assert.ok(resetMs > 0 && resetMs <= 60_000);
});

test('quota: looking answers as taking would, and takes nothing', async () => {
  const quota = memoryQuota();
  for (let i = 0; i < 5; i++) {
    const looked = await quota.look(rule, 'a');
    assert.deepEqual(outcome(await quota.look(rule, 'a')), outcome(looked));
    const taken = await quota.take(rule, 'a');
    assert.deepEqual(outcome(taken), outcome(looked));
    assert.ok(taken.resetMs <= looked.resetMs);
  }
});

test('quota: several units at once count at once', async () => {
  const quota = memoryQuota();
  assert.deepEqual(outcome(await quota.take(rule, 'a', 2)), { allowed: true, limit: 3, remaining: 1 });
  assert.equal((await quota.take(rule, 'a', 2)).allowed, false);
});

test('quota: keys and rules are counted apart', async () => {
  const quota = memoryQuota();
  const daily = { name: 'daily', windowMs: 86_400_000, maxRequests: 1 };
  await quota.take(daily, 'a');
  assert.equal((await quota.take(daily, 'a')).allowed, false);
  assert.equal((await quota.take(daily, 'b')).allowed, true);
  assert.equal((await quota.take(rule, 'a')).allowed, true);
  assert.equal((await quota.take({ ...daily, maxRequests: 2 }, 'a')).allowed, true);
});

test('quota: of 100 calls at once exactly the limit is allowed', async () => {
  const quota = memoryQuota();
  const wide = { name: 'wide', windowMs: 60_000, maxRequests: 20 };
  const states = await Promise.all(Array.from({ length: 100 }, () => quota.take(wide, 'a')));
  assert.equal(states.filter((state) => state.allowed).length, 20);
});

test('quota: a window that is over is forgotten, also where it was refused all along', async () => {
  const quota = memoryQuota();
  const short = { name: 'short', windowMs: 40, maxRequests: 1 };
  await quota.take(short, 'a');
  const freed = async () => {
    for (;;) {
      // asking on and on must not make the window longer
      if ((await quota.take(short, 'a')).allowed) return true;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  assert.equal(await freed(), true);
});

test('quota: a window ends at its time, also where no timer could run', async () => {
  const quota = memoryQuota();
  const short = { name: 'short', windowMs: 20, maxRequests: 1 };
  await quota.take(short, 'a');
  const over = Date.now() + 30;
  while (Date.now() < over); // nothing else runs meanwhile
  assert.equal((await quota.look(short, 'a')).allowed, true);
  assert.equal((await quota.take(short, 'a')).allowed, true);
});

test('quota: a limit of none refuses, looked at or taken', async () => {
  const quota = memoryQuota();
  const none = { name: 'none', windowMs: 60_000, maxRequests: 0 };
  assert.equal((await quota.look(none, 'a')).allowed, false);
  assert.equal((await quota.take(none, 'a')).allowed, false);
});

test('quota: memory is bounded; the oldest windows make room for new ones', async () => {
  const quota = memoryQuota({ keysMax: 3 });
  const once = { name: 'once', windowMs: 60_000, maxRequests: 1 };
  for (const key of ['a', 'b', 'c', 'd']) assert.equal((await quota.take(once, key)).allowed, true);
  // a was forgotten for d; b, c and d are remembered
  for (const key of ['b', 'c', 'd']) assert.equal((await quota.look(once, key)).allowed, false, key);
  assert.equal((await quota.look(once, 'a')).allowed, true);
});

test('quota: a window longer than a timer can hold is refused, not cut short', () => {
  const long = { name: 'long', windowMs: 30 * 86_400_000, maxRequests: 1 };
  assert.throws(() => memoryQuota().take(long, 'a'), RangeError);
});
