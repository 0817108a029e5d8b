// Plots: every number finite, every mark inside the view, as many marks as there are figures.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Bucket, type Plot, plot } from '#src/http/pages/status-page.ts';
import { runs } from '#test/support/given/property-runs.ts';

const MINUTE = 60_000;

const stacked: Plot = {
  id: 'a',
  title: 'Title',
  unit: (value) => (Number.isInteger(value) ? String(value) : ''),
  layers: [
    { name: 'good', colour: 'accent', value: ({ succeeded }) => succeeded },
    { name: 'bad', colour: 'bad', value: ({ failed }) => failed },
  ],
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
  const rects = [...svg.matchAll(/<rect x="([^"]*)" y="([^"]*)" width="([^"]*)" height="([^"]*)"/g)];
  const across = rects.map(([, x, , width]) => Number(x) + Number(width));
  const down = rects.map(([, , y, , height]) => Number(y) + Number(height));
  // Rounding to tenths may add one.
  for (const x of [...numbers('x'), ...across]) assert.ok(x >= 0 && x <= 360.1, `x ${x}`);
  for (const y of [...numbers('y'), ...down]) assert.ok(y >= 0 && y <= 200.1, `y ${y}`);
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
      const svg = plot(bucketsOf(from, size, values), size, stacked).markup;
      assertInside(svg);
      assert.equal(svg.split('<rect').length - 1, values.flat().filter((value) => value > 0).length);
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

test('plot: it names itself for who does not see it, its words escaped', () => {
  const evil = '<b>"&';
  const svg = plot(bucketsOf(0, MINUTE, [[1, 0]]), MINUTE, { ...stacked, id: 'x', title: evil }).markup;
  assertInside(svg);
  assert.match(svg, /role="img" aria-labelledby="x-title"/);
  assert.ok(svg.includes('<title id="x-title">&lt;b&gt;&quot;&amp;: at most 1 in 1 min</title>'));
  assert.ok(!svg.includes(evil));
});

test('plot: ticks in the unit of the figures and in UTC, the day at midnight', () => {
  const from = Date.parse('2026-03-28T21:00:00.000Z');
  const ticks = (size: number, succeeded: number, changes: Partial<Plot> = {}) => {
    const svg = plot(bucketsOf(from, size, [[succeeded, 0]]), size, { ...stacked, ...changes }).markup;
    return [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text);
  };
  assert.deepEqual(ticks(24 * 60 * MINUTE, 1, { unit: (value) => `${value * 100} %` }), [
    ...['0 %', '20 %', '40 %', '60 %', '80 %', '100 %', '29 Mar', '06:00', '12:00', '18:00'],
  ]);
  assert.deepEqual(ticks(MINUTE, 2), ['0', '', '1', '', '2', '21:00', '21:01']);
});
