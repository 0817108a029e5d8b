// How far a rebuild is, in words: a rate, and a share and a time left only where the live rows can tell.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paceOf, progressLine, showProgress } from '#src/cli/rebuild-progress.ts';

const at = (events: number, share: number | null) => ({ events, eventsHere: events, share });

test('rate, share and time left', () => {
  const pace = paceOf(at(50_000, 0.25), 0, 10_000);
  assert.deepEqual(pace, { perSecond: 5000, percent: 25, secondsLeft: 30 });
  assert.equal(progressLine(at(50_000, 0.25), pace), '50000 events, 5000 events/s, 25 %, about 30 s left');
});

test('after an interruption the time left is told from this run alone', () => {
  const progress = { events: 60_000, eventsHere: 10_000, share: 0.6 };
  assert.deepEqual(paceOf(progress, 0.5, 2000), { perSecond: 5000, percent: 60, secondsLeft: 8 });
});

test('nothing is made up: no share known, no progress yet, not done before the end', () => {
  assert.deepEqual(paceOf(at(10, null), null, 1000), { perSecond: 10, percent: null, secondsLeft: null });
  assert.deepEqual(paceOf(at(0, 0.5), 0.5, 0), { perSecond: 0, percent: 50, secondsLeft: null });
  assert.equal(paceOf(at(10, 1), 0, 1000).percent, 99);
  assert.equal(progressLine(at(10, null), paceOf(at(10, null), null, 1000)), '10 events, 10 events/s');
});

test('without a terminal: a line every five seconds, and one where it goes on', () => {
  const lines: string[] = [];
  let now = 0;
  const pipe = { isTTY: false } as NodeJS.WriteStream;
  const shown = showProgress(
    'rebuilding',
    pipe,
    (line) => lines.push(line),
    () => now,
  );
  shown.show({ events: 100, eventsHere: 0, share: null });
  for (now = 1000; now <= 11_000; now += 1000)
    shown.show({ events: 100 + now, eventsHere: now, share: null });
  shown.end();
  assert.deepEqual(lines, [
    'rebuilding: going on after 100 events',
    'rebuilding: 5100 events, 1000 events/s',
    'rebuilding: 10100 events, 1000 events/s',
  ]);
});

test('on a terminal: one bar with the same words', () => {
  const written: string[] = [];
  const terminal = {
    isTTY: true,
    columns: 120,
    write: (text: string) => written.push(text),
    on: () => undefined,
    removeListener: () => undefined,
  } as unknown as NodeJS.WriteStream;
  let now = 0;
  const shown = showProgress(
    'comparing',
    terminal,
    () => assert.fail('no line'),
    () => now,
  );
  shown.show(at(0, 0));
  now = 10_000;
  shown.show(at(50_000, 0.5));
  shown.end();
  const all = written.join('');
  assert.match(all, /comparing .*█/);
  assert.match(all, /50000 events, 5000 events\/s, 50 %, about 10 s left/);
});
