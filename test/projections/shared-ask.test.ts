// Equal questions at once: one answer for those who may share it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readModels } from '#projections/read-models.ts';
import { sharedAsk } from '#projections/shared-ask.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
import { PLAN } from '#test/support/job-histories.ts';
import { waitFor } from '#test/support/service.ts';

/** Work that ends when it is let, and says how many have begun. */
function gated() {
  const begun: ReturnType<typeof Promise.withResolvers<void>>[] = [];
  const work = async () => {
    const gate = Promise.withResolvers<void>();
    begun.push(gate);
    const nth = begun.length;
    await gate.promise;
    return nth;
  };
  return { begun, work };
}

test('shared ask: who asks while it is worked out shares the next answer, and only one is worked out at a time', async () => {
  const { begun, work } = gated();
  const ask = sharedAsk();
  const first = ask('a', work);
  const [second, third] = [ask('a', work), ask('a', work)];
  assert.equal(begun.length, 1);
  begun[0]?.resolve();
  assert.equal(await first, 1);
  await waitFor('the next one', () => begun.length === 2);
  const fourth = ask('a', work);
  begun[1]?.resolve();
  assert.deepEqual([await second, await third], [2, 2]);
  await waitFor('the last one', () => begun.length === 3);
  begun[2]?.resolve();
  assert.equal(await fourth, 3);
  const fifth = ask('a', work);
  assert.equal(begun.length, 4, 'nothing is kept');
  begun[3]?.resolve();
  assert.equal(await fifth, 4);
});

test('shared ask: of those who share an answer, what the last one asked is done', async () => {
  const { begun, work } = gated();
  const ask = sharedAsk();
  const first = ask('a', work);
  const rest = ['b', 'c'].map((answer) => ask('a', async () => answer));
  begun[0]?.resolve();
  assert.deepEqual(await Promise.all([first, ...rest]), [1, 'c', 'c']);
});

test('shared ask: different questions do not wait for each other', async () => {
  const { begun, work } = gated();
  const ask = sharedAsk();
  const asked = [ask('a', work), ask('b', work)];
  assert.equal(begun.length, 2);
  for (const gate of begun) gate.resolve();
  assert.deepEqual(await Promise.all(asked), [1, 2]);
});

test('shared ask: a failure is of those who share it, and the next ones are answered', async () => {
  const { begun, work } = gated();
  const ask = sharedAsk();
  const first = ask('a', work);
  const next = ask('a', async () => 'well');
  begun[0]?.reject(new Error('away'));
  await assert.rejects(first, /away/);
  assert.equal(await next, 'well');
});

/** Every query answers with how many were asked before it. */
function countingStore() {
  const { begun, work } = gated();
  const query: object = new Proxy(
    {},
    {
      get(_, name) {
        if (name === 'then') return undefined;
        return name === 'execute' ? async () => [answerOf(await work())] : () => query;
      },
    },
  );
  const open = async () => query as Awaited<ReturnType<ReadStore<never>['open']>>;
  return { begun, open };
}

const answerOf = (nth: number) => ({
  ...{ bucket: 1, succeeded: nth, failed: 0, durations: [] },
  ...{ recentSucceeded: nth, recentFailed: 0, running: 0, overdue: 0 },
});

test('read models: equal windows that are asked for at once share one query, other windows have theirs', async () => {
  const { begun, open } = countingStore();
  const { monitoring } = readModels({ open }, systemClock(), async () => true);
  const minute = '2026-01-02T03:04';
  const series = (since: string) => () => monitoring.series(since, [minute]);
  const summary = (laterMs: number) => () => monitoring.summary(PLAN.startedAtMs + laterMs, 3_600_000);
  for (const [equal, other] of [
    [[series(minute), series(minute), series(minute)], series('2026-01-02T03:05')],
    [[summary(0), summary(1), summary(2)], summary(60_000)],
  ] as const) {
    begun.length = 0;
    const first = equal[0]();
    await waitFor('the first query', () => begun.length === 1);
    const asked = [...equal, other].map((ask) => ask());
    await waitFor('the query of the other window', () => begun.length === 2);
    begun[0]?.resolve();
    await first;
    await waitFor('the query of all who waited', () => begun.length === 3);
    for (const gate of begun) gate.resolve();
    const [one, two, three] = await Promise.all(asked);
    assert.deepEqual([two, three], [one, one]);
    assert.equal(begun.length, 3);
  }
});
