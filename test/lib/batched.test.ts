// Look-ups by id that share statements.
import { deepEqual, equal, rejects } from 'node:assert/strict';
import { test } from 'node:test';
import { batched } from '#src/lib/batched.ts';

/** Each look-up is answered by hand, in any order. */
function lookUps() {
  const asked: { readonly ids: readonly string[]; answer(): void; fail(): void }[] = [];
  const find = batched((ids: readonly string[]) => {
    const { promise, resolve, reject } = Promise.withResolvers<ReadonlyMap<string, string>>();
    const rows = ids.filter((id) => !id.startsWith('missing')).map((id) => [id, `row of ${id}`] as const);
    const answer = () => resolve(new Map(rows));
    asked.push({ ids, answer, fail: () => reject(new Error('lost')) });
    return promise;
  });
  return { asked, find };
}

const turns = () => new Promise((resolve) => setTimeout(resolve, 0));

test('batched: calls of one turn share a look-up of distinct ids; what is missing is null', async () => {
  const { asked, find } = lookUps();
  const found = Promise.all(['a', 'missing', 'b', 'a'].map(find));
  await turns();
  deepEqual(
    asked.map(({ ids }) => ids),
    [['a', 'missing', 'b']],
  );
  asked[0]?.answer();
  deepEqual(await found, ['row of a', null, 'row of b', 'row of a']);
});

test('batched: calls beyond two look-ups share the next one, which begins after them', async () => {
  const { asked, find } = lookUps();
  for (const id of ['a', 'b']) {
    void find(id);
    await turns();
  }
  const late = [find('a'), find('e')];
  await turns();
  equal(asked.length, 2, 'an id in flight is looked up again: its row may have changed');
  asked[1]?.answer();
  await turns();
  deepEqual(asked[2]?.ids, ['a', 'e']);
  asked[2]?.answer();
  deepEqual(await Promise.all(late), ['row of a', 'row of e']);
});

test('batched: a look-up that fails fails its callers alone, and frees its place', async () => {
  const { asked, find } = lookUps();
  const first = ['a', 'b'].map(async (id, at) => {
    for (let turn = 0; turn < at; turn++) await turns();
    return find(id);
  });
  const lost = rejects(first[0] ?? Promise.resolve(), /lost/);
  for (let turn = 0; turn < 3; turn++) await turns();
  const next = find('e');
  await turns();
  asked[0]?.fail();
  await lost;
  await turns();
  for (const { answer } of asked) answer();
  equal(await next, 'row of e');
  deepEqual(await Promise.all(first.slice(1)), ['row of b']);
});
