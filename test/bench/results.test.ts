// bench.json is JSON with every figure, README's table is made of it, and no label of bench.svg covers another.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plotOf } from './plot.ts';
import {
  IN_README,
  type Results,
  readmeSection,
  readmeTable,
  resultsText,
  tableOf,
  withReadmeSection,
} from './results.ts';
import { NO_GOAL, ratioAtLeast, row } from './rounds.ts';

const rounds = [
  { ours: 50, peer: 100 },
  { ours: 61.234567, peer: 100 },
  { ours: 70, peer: 100 },
];

const RESULTS: Results = {
  at: '2026-01-02T03:04:05.678Z',
  size: 'full',
  machine: '2 cores',
  bun: '1.4.4',
  load: [
    [0, 0, 0],
    [1, 1, 1],
  ],
  seconds: { P1: 1 },
  rows: IN_README.map(([measure, begin], n) =>
    row(
      { measure, title: `${begin} …`, unit: '/s', peer: 'a peer' },
      n > 0 ? ratioAtLeast(0.6) : NO_GOAL,
      rounds,
    ),
  ),
  notes: { P1: ['what the peer is'] },
  points: {},
};

test('bench.json has every field of the results, a row of the table on a line', () => {
  const text = resultsText(RESULTS);
  const stored: Results = JSON.parse(text);
  assert.deepEqual(Object.keys(stored).sort(), Object.keys(RESULTS).sort());
  assert.deepEqual(stored.notes, RESULTS.notes);
  assert.deepEqual(stored.rows[0]?.ours, { median: 61.235, least: 50, most: 70 });
  assert.equal(text.split('\n').filter((line) => line.includes('"compared"')).length, RESULTS.rows.length);
  assert.equal(readmeTable(stored), readmeTable(RESULTS), 'rounding changes no figure of README');
});

test('the table states whether a goal was reached only for full runs, with the notes below', () => {
  assert.match(tableOf(RESULTS), /× 0\.612 +0\.5 to 0\.7 +≥ 0\.6 +reached\n/);
  assert.match(tableOf(RESULTS), /\n\nP1: what the peer is$/);
  const quick = tableOf({ ...RESULTS, size: 'quick' });
  assert.doesNotMatch(quick, /reached|missed/);
  assert.match(quick, /too few calls/);
});

test('the table of README replaces the one before, and nothing else', () => {
  const readme = 'before\n<!-- bench -->\nan old table\n<!-- /bench -->\nafter\n';
  const written = withReadmeSection(readme, RESULTS);
  assert.equal(readmeSection(written), readmeTable(RESULTS));
  assert.equal(written.replace(readmeTable(RESULTS), 'an old table\n'), readme);
  assert.throws(() => withReadmeSection('no marks', RESULTS), /no marks/);
  assert.throws(() => readmeTable({ ...RESULTS, rows: RESULTS.rows.slice(1) }), /no row P1/);
});

test('the plot: labels of lines that end close to each other are apart, within the panel', () => {
  const series = ['one', 'two', 'three', 'four', 'five', 'six'];
  const points = series.flatMap((name, n) => [
    { series: name, x: 10_000, y: 1 },
    { series: name, x: 1_000_000, y: n < 3 ? 0 : 1.3 + n / 1000 },
  ]);
  const svg = plotOf({ P7: points });
  const heights = series.map((name) => Number(new RegExp(` y="([\\d.]+)"[^>]*>${name}<`).exec(svg)?.[1]));
  const sorted = [...heights].sort((a, b) => a - b);
  sorted.forEach((height, n) => {
    assert.ok(height - (sorted[n - 1] ?? 0) >= 13.9, `${heights}`);
    assert.ok(height > 20 && height < 300, `${heights}`);
  });
  assert.doesNotMatch(svg, /NaN|undefined/);
});
