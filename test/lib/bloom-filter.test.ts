// Filters of texts: none that was added is taken for new, and few new ones for known.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BloomFilter, GrowingFilter } from '#src/lib/bloom-filter.ts';

const texts = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => `stream-${((from + n) * 2654435761) % 4294967296}`);

test('what was added is known, and of what was not, one of a hundred at most', () => {
  const filter = new BloomFilter({ texts: 10_000 });
  const added = texts(0, 10_000);
  const certainlyNew = added.filter((text) => filter.add(text)).length;
  assert.ok(certainlyNew > 9_900, `${certainlyNew} were known as new`);
  assert.ok(added.every((text) => filter.has(text) && !filter.add(text)));
  const seeming = texts(10_000, 10_000).filter((text) => filter.has(text)).length;
  assert.ok(seeming < 100, `${seeming} seem to have come`);
});

test('a filter that grows knows as many more as it takes, also when its layers are read again', () => {
  const filter = new GrowingFilter();
  const added = texts(0, 200_000);
  for (const text of added) filter.add(text);
  assert.ok(filter.layers.length > 2);
  const again = new GrowingFilter(
    filter.layers.map(({ filter, texts }) => ({ filter: new BloomFilter(filter.words.slice()), texts })),
  );
  for (const each of [filter, again]) {
    assert.ok(added.every((text) => each.has(text)));
    const seeming = texts(200_000, 20_000).filter((text) => each.has(text)).length;
    assert.ok(seeming < 600, `${seeming} seem to have come`);
  }
});
