// The contract of the quota port, for every adapter.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sleep } from '#src/lib/time.ts';
import type { Quota, QuotaState } from '#src/ports/quota.ts';

export type QuotaHarness = {
  readonly name: string;
  readonly needs: { readonly skip: boolean };
  /** A quota without any counts. */
  fresh(): Promise<Quota>;
  /** Frees all results of `fresh`. */
  end(): Promise<void>;
};

const rule = { name: 'calls', windowMs: 60_000, maxRequests: 3 };
const outcome = ({ allowed, limit, remaining }: QuotaState) => ({ allowed, limit, remaining });

export function quotaContract({ name, needs, fresh, end }: QuotaHarness): void {
  describe(`quota, ${name}`, needs, () => {
    let quota: Quota;
    let keys = 0;
    /** A key without a window. */
    const newKey = () => `key ${keys++}`;

    before(async () => {
      quota = await fresh();
    });
    after(end);

    test('takes up to the limit and refuses beyond it, until the window ends', async () => {
      const key = newKey();
      const states = [];
      for (let i = 0; i < 5; i++) states.push(await quota.take(rule, key));
      assert.deepEqual(states.map(outcome), [
        { allowed: true, limit: 3, remaining: 2 },
        { allowed: true, limit: 3, remaining: 1 },
        { allowed: true, limit: 3, remaining: 0 },
        { allowed: false, limit: 3, remaining: 0 },
        { allowed: false, limit: 3, remaining: 0 },
      ]);
      for (const { resetMs } of states) assert.ok(resetMs > 0 && resetMs <= 60_000, `${resetMs}`);
    });

    test('`look` returns the state that `take` would, and takes nothing', async () => {
      const key = newKey();
      for (let i = 0; i < 5; i++) {
        const looked = await quota.look(rule, key);
        assert.deepEqual(outcome(await quota.look(rule, key)), outcome(looked));
        assert.deepEqual(outcome(await quota.take(rule, key)), outcome(looked));
      }
    });

    test('each key, rule name and window length is counted separately', async () => {
      const key = newKey();
      const once = { name: 'once', windowMs: 60_000, maxRequests: 1 };
      await quota.take(once, key);
      assert.equal((await quota.take(once, key)).allowed, false);
      assert.equal((await quota.take(once, newKey())).allowed, true);
      assert.equal((await quota.take(rule, key)).allowed, true);
      assert.equal((await quota.take({ ...once, windowMs: 86_400_000 }, key)).allowed, true);
    });

    test('of 100 concurrent calls exactly the limit is allowed, and each receives the remaining number', async () => {
      const wide = { name: 'wide', windowMs: 60_000, maxRequests: 20 };
      const [one, other] = [newKey(), newKey()];
      const states = await Promise.all(
        Array.from({ length: 200 }, (_, n) => quota.take(wide, n % 2 === 0 ? one : other)),
      );
      for (const half of [0, 1]) {
        const remaining = states
          .filter((state, n) => n % 2 === half && state.allowed)
          .map((state) => state.remaining);
        assert.deepEqual(
          remaining,
          Array.from({ length: 20 }, (_, n) => 19 - n),
        );
      }
    });

    test('a window ends, also after refusals throughout', async () => {
      const key = newKey();
      const short = { name: 'short', windowMs: 40, maxRequests: 1 };
      await quota.take(short, key);
      // Repeated calls must not extend the window.
      while (!(await quota.take(short, key)).allowed) await sleep(5);
      assert.ok((await quota.look(short, newKey())).allowed);
    });

    test('a call with another limit counts in the same window, and its own limit applies', async () => {
      const key = newKey();
      const [wide, narrow] = [5, 3].map((maxRequests) => ({ ...rule, name: 'limits', maxRequests }));
      assert.ok(wide !== undefined && narrow !== undefined);
      await quota.take(wide, key);
      await quota.take(wide, key);
      assert.deepEqual(outcome(await quota.take(wide, key)), { allowed: true, limit: 5, remaining: 2 });
      assert.deepEqual(outcome(await quota.look(narrow, key)), { allowed: false, limit: 3, remaining: 0 });
      assert.deepEqual(outcome(await quota.take(narrow, key)), { allowed: false, limit: 3, remaining: 0 });
      assert.equal((await quota.look(wide, key)).allowed, true);
    });

    test('a limit of 0 refuses `look` and `take`', async () => {
      const none = { name: 'none', windowMs: 60_000, maxRequests: 0 };
      const key = newKey();
      const states = [await quota.look(none, key), await quota.take(none, key)];
      assert.deepEqual(states.map(outcome), Array(2).fill({ allowed: false, limit: 0, remaining: 0 }));
    });

    test('any text is a key', async () => {
      for (const key of [
        '',
        'ä € \u{1f600}',
        'a\nb',
        `${'x'.repeat(10_000)}`,
        "'; drop table quota_windows",
      ]) {
        assert.equal((await quota.take({ ...rule, name: 'any' }, key)).remaining, 2, key.slice(0, 20));
      }
    });
  });
}
