// Plots: every number finite, every mark inside the view, as many marks as there are figures.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { markup } from '#src/http/pages/markup.ts';
import { type Bar, bars, curve, type Plot, type Point, plot, VIEW } from '#src/http/pages/plot.ts';
import { runs } from '#test/support/property-runs.ts';

const MINUTE = 60_000;

const frame = (changes: Partial<Plot>): Plot => ({
  id: 'a',
  title: 'Title',
  description: 'Description.',
  from: 0,
  to: 60 * MINUTE,
  max: 10,
  unit: String,
  nothing: null,
  marks: () => markup``,
  ...changes,
});

/** Every coordinate of the drawing: absolute ones only are looked at, which all but ticks and dashes are. */
function coordinates(svg: string): { readonly x: number[]; readonly y: number[] } {
  const numbers = (name: string) =>
    [...svg.matchAll(new RegExp(` ${name}="([^"]*)"`, 'g'))].map(([, value]) => Number(value));
  const paths = [...svg.matchAll(/ d="([^"]*)"/g)].flatMap(([, path = '']) => [
    ...path.matchAll(/[ML](-?[\d.]+|NaN)[, ](-?[\d.]+|NaN)/g),
  ]);
  const rects = [...svg.matchAll(/<rect x="([^"]*)" y="([^"]*)" width="([^"]*)" height="([^"]*)"/g)];
  return {
    x: [
      ...[...numbers('x'), ...numbers('cx')],
      ...paths.map(([, x]) => Number(x)),
      ...rects.map(([, x, , width]) => Number(x) + Number(width)),
    ],
    y: [
      ...[...numbers('y'), ...numbers('cy')],
      ...paths.map(([, , y]) => Number(y)),
      ...rects.map(([, , y, , height]) => Number(y) + Number(height)),
    ],
  };
}

function assertInside(svg: string): void {
  assert.doesNotMatch(svg, /NaN|Infinity|undefined|e[+-]\d/);
  const { x, y } = coordinates(svg);
  assert.ok(x.length > 0 && y.length > 0);
  // Rounding to tenths may add one.
  for (const value of x) assert.ok(value >= 0 && value <= VIEW.width + 0.1, `x ${value}`);
  for (const value of y) assert.ok(value >= 0 && value <= VIEW.height + 0.1, `y ${value}`);
}

const figure = fc.oneof(fc.constant(0), fc.nat({ max: 5 }), fc.nat({ max: 2_000_000 }));
const counts = fc.array(fc.tuple(figure, figure), { minLength: 1, maxLength: 100 });
const spans = fc.record({ from: fc.integer({ min: 0, max: 4e12 }), size: fc.constantFrom(1, 15, 120, 480) });

test('plot: stacked bars stand inside the view, one for each figure that is not 0', () => {
  fc.assert(
    fc.property(counts, spans, (values, { from, size }) => {
      const width = size * MINUTE;
      const entries: Bar[] = values.map((pair, at) => ({ at: from + at * width, values: pair }));
      const max = Math.max(...values.map(([low, high]) => low + high));
      const to = from + values.length * width;
      const marks: Plot['marks'] = (scales) => bars(scales, entries, width, ['accent', 'bad']);
      const svg = plot(frame({ from, to, max, marks, whole: true })).markup;
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
      const points: Point[] = known.map((value, at) => ({ at: from + at * size * MINUTE, value }));
      const to = from + known.length * size * MINUTE;
      const max = Math.max(0, ...known.map((value) => value ?? 0));
      const svg = plot(
        frame({ from, to, max, marks: (scales) => curve(scales, points, 'warn', true) }),
      ).markup;
      assertInside(svg);
      assert.equal(svg.split('<circle').length - 1, known.filter((value) => value !== null).length);
      const runs = known.filter((value, at) => value !== null && (known[at - 1] ?? null) === null).length;
      const drawn = /stroke-dasharray="5 3" d="([^"]*)"/.exec(svg)?.[1] ?? '';
      assert.equal(drawn.split('M').length - 1, runs);
    }),
    { numRuns: runs(300) },
  );
});

test('plot: bars stand on each other, from the axis up', () => {
  const marks: Plot['marks'] = (scales) =>
    bars(scales, [{ at: 0, values: [6, 4] }], MINUTE, ['accent', 'bad']);
  const svg = plot(frame({ marks, to: MINUTE })).markup;
  const [low, high] = [
    ...svg.matchAll(/<rect x="([\d.]+)" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"/g),
  ].map(([, , y, height]) => ({ top: Number(y), height: Number(height) }));
  assert.ok(low && high);
  assert.equal(low.top + low.height, 172);
  assert.equal(high.top + high.height, low.top);
  assert.deepEqual([low.height, high.height], [96, 64]);
  assert.match(svg, /<g class="fill-accent"><rect[^>]*\/><\/g><g class="fill-bad"><rect/);
});

test('plot: it names itself for who does not see it, its words escaped', () => {
  const evil = '<b>"&';
  const svg = plot(frame({ id: 'x', title: evil, description: evil, nothing: evil })).markup;
  assert.match(svg, /role="img" aria-labelledby="x-title x-text"/);
  const escaped = '&lt;b&gt;&quot;&amp;';
  assert.ok(svg.includes(`<title id="x-title">${escaped}</title><desc id="x-text">${escaped}</desc>`));
  assert.equal(svg.split(escaped).length - 1, 3);
  assert.ok(!svg.includes(evil));
});

test('plot: without figures it says so, in a frame', () => {
  const svg = plot(frame({ max: 0, nothing: 'Nothing yet.', marks: () => assert.fail('drawn') })).markup;
  assertInside(svg);
  assert.match(svg, />Nothing yet\.<\/text>/);
});

test('plot: ticks in the unit of the figures and in UTC, the day at midnight', () => {
  const ticks = (changes: Partial<Plot>) =>
    [...plot(frame(changes)).markup.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text);
  const from = Date.parse('2026-03-28T21:00:00.000Z');
  assert.deepEqual(
    ticks({ from, to: from + 24 * 60 * MINUTE, max: 1, unit: (value) => `${value * 100} %` }),
    [...['0 %', '20 %', '40 %', '60 %', '80 %', '100 %'], ...['29 Mar', '06:00', '12:00', '18:00']],
  );
  assert.deepEqual(ticks({ max: 2, whole: true, from, to: from + MINUTE }), [
    '0',
    '1',
    '2',
    '21:00',
    '21:01',
  ]);
});
