// Plots: every number finite, every mark inside the view, as many marks as there are figures.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Bucket, type Plot, plot } from '#src/http/pages/status-plots.ts';
import { runs } from '#test/support/property-runs.ts';

const MINUTE = 60_000;

const stacked: Plot = {
  id: 'a',
  title: 'Title',
  description: 'Description.',
  stacked: true,
  max: 10,
  unit: String,
  nothing: 'Nothing yet.',
  layers: [
    { name: 'good', colour: 'accent', value: ({ succeeded }) => succeeded || null },
    { name: 'bad', colour: 'bad', value: ({ failed }) => failed || null },
  ],
};
const lines: Plot = {
  ...stacked,
  stacked: false,
  layers: [{ name: 'median', colour: 'warn', value: ({ durationMs }) => durationMs?.p50 ?? null }],
};

const bucketsOf = (from: number, size: number, pairs: readonly (readonly [number, number])[]): Bucket[] =>
  pairs.map(([succeeded, failed], at) => ({
    at: new Date(from + at * size).toISOString(),
    succeeded,
    failed,
    durationMs: null,
  }));

function assertInside(svg: string): void {
  assert.doesNotMatch(svg, /NaN|Infinity|undefined|e[+-]\d/);
  const numbers = (name: string) =>
    [...svg.matchAll(new RegExp(` ${name}="([^"]*)"`, 'g'))].map(([, value]) => Number(value));
  const points = [...svg.matchAll(/ d="([^"]*)"/g)].flatMap(([, path = '']) => [
    ...path.matchAll(/[ML](-?[\d.]+)[, ](-?[\d.]+)/g),
  ]);
  const rects = [...svg.matchAll(/<rect x="([^"]*)" y="([^"]*)" width="([^"]*)" height="([^"]*)"/g)];
  const across = [...rects.map(([, x, , width]) => Number(x) + Number(width)), ...numbers('cx')];
  const down = [...rects.map(([, , y, , height]) => Number(y) + Number(height)), ...numbers('cy')];
  // Rounding to tenths may add one.
  for (const x of [...numbers('x'), ...across, ...points.map(([, x]) => Number(x))])
    assert.ok(x >= 0 && x <= 360.1, `x ${x}`);
  for (const y of [...numbers('y'), ...down, ...points.map(([, , y]) => Number(y))])
    assert.ok(y >= 0 && y <= 200.1, `y ${y}`);
}

const figure = fc.oneof(fc.constant(0), fc.nat({ max: 5 }), fc.nat({ max: 2_000_000 }));
const counts = fc.array(fc.tuple(figure, figure), { minLength: 1, maxLength: 100 });
const spans = fc.record({
  from: fc.integer({ min: 0, max: 4e12 }),
  size: fc.constantFrom(1, 15, 120, 480).map((minutes) => minutes * MINUTE),
});

test('plot: stacked bars stand inside the view, one for each figure that is not 0', () => {
  fc.assert(
    fc.property(counts, spans, (values, { from, size }) => {
      const max = Math.max(...values.map(([low, high]) => low + high));
      const svg = plot(bucketsOf(from, size, values), size, { ...stacked, max }).markup;
      assertInside(svg);
      assert.equal(svg.split('<rect').length - 1, values.flat().filter((value) => value > 0).length);
    }),
    { numRuns: runs(300) },
  );
});

test('plot: a curve has a point for each figure that is known, and its line ends where none is', () => {
  const values = fc.array(fc.option(fc.nat({ max: 1e7 }).map((tenths) => tenths / 10)), {
    minLength: 1,
    maxLength: 100,
  });
  fc.assert(
    fc.property(values, spans, (known, { from, size }) => {
      const empty = bucketsOf(
        from,
        size,
        known.map(() => [0, 0] as const),
      );
      const series = empty.map((bucket, at) => {
        const p50 = known[at] ?? null;
        return { ...bucket, durationMs: p50 === null ? null : { p50, p95: p50 } };
      });
      const max = Math.max(0, ...known.map((value) => value ?? 0));
      const svg = plot(series, size, { ...lines, max }).markup;
      assertInside(svg);
      assert.equal(svg.split('<circle').length - 1, known.filter((value) => value !== null).length);
      const runs = known.filter((value, at) => value !== null && (known[at - 1] ?? null) === null).length;
      const drawn = /stroke-warn"[^>]* d="([^"]*)"/.exec(svg)?.[1] ?? '';
      assert.equal(drawn.split('M').length - 1, runs);
    }),
    { numRuns: runs(300) },
  );
});

test('plot: bars stand on each other, from the axis up', () => {
  const svg = plot(bucketsOf(0, MINUTE, [[6, 4]]), MINUTE, stacked).markup;
  const [low, high] = [
    ...svg.matchAll(/<rect x="[\d.]+" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"/g),
  ].map(([, y, height]) => ({ top: Number(y), height: Number(height) }));
  assert.ok(low && high);
  assert.equal(low.top + low.height, 172);
  assert.equal(high.top + high.height, low.top);
  assert.deepEqual([low.height, high.height], [96, 64]);
});

test('plot: it names itself for who does not see it, and says where there is nothing, its words escaped', () => {
  const evil = '<b>"&';
  const words = { id: 'x', title: evil, description: evil, nothing: evil };
  const svg = plot(bucketsOf(0, MINUTE, [[0, 0]]), MINUTE, { ...stacked, ...words, max: 0 }).markup;
  assertInside(svg);
  assert.match(svg, /role="img" aria-labelledby="x-title x-text"/);
  const escaped = '&lt;b&gt;&quot;&amp;';
  assert.ok(svg.includes(`<title id="x-title">${escaped}</title><desc id="x-text">${escaped}</desc>`));
  assert.ok(svg.includes(`>${escaped}</text>`));
  assert.ok(!svg.includes(evil));
});

test('plot: ticks in the unit of the figures and in UTC, the day at midnight', () => {
  const from = Date.parse('2026-03-28T21:00:00.000Z');
  const ticks = (size: number, changes: Plot) =>
    [
      ...plot(bucketsOf(from, size, [[1, 0]]), size, changes).markup.matchAll(/<text[^>]*>([^<]*)<\/text>/g),
    ].map(([, text]) => text);
  assert.deepEqual(ticks(24 * 60 * MINUTE, { ...lines, max: 1, unit: (value) => `${value * 100} %` }), [
    ...['0 %', '20 %', '40 %', '60 %', '80 %', '100 %', '29 Mar', '06:00', '12:00', '18:00'],
    'Nothing yet.',
  ]);
  assert.deepEqual(ticks(MINUTE, { ...stacked, max: 2 }), ['0', '1', '2', '21:00', '21:01']);
});
