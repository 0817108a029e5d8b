// Progress as text: a rate, and a percentage if it is known.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { progressText, showProgress } from '#src/cli/terminal.ts';

const at = (events: number, share: number | null) => ({ events, eventsHere: events, share });

test('rate and share; never 100 % before the end', () => {
  assert.equal(progressText(at(50_000, 0.25), 10_000), '50000 events, 5000 events/s, 25 %');
  assert.equal(progressText(at(10, 1), 1000), '10 events, 10 events/s, 99 %');
  assert.equal(progressText(at(10, null), 1000), '10 events, 10 events/s');
});

test('without a terminal: a line every five seconds, and one when it continues', () => {
  const lines: string[] = [];
  let now = 0;
  const pipe = { isTTY: false } as NodeJS.WriteStream;
  const shown = showProgress(
    'rebuilding',
    (line) => lines.push(line),
    pipe,
    () => now,
  );
  shown.show({ events: 100, eventsHere: 0, share: null });
  for (now = 1000; now <= 11_000; now += 1000)
    shown.show({ events: 100 + now, eventsHere: now, share: null });
  shown.end();
  assert.deepEqual(lines, [
    'rebuilding: continuing after 100 events',
    'rebuilding: 5100 events, 1000 events/s',
    'rebuilding: 10100 events, 1000 events/s',
  ]);
});

test('on a terminal: one bar with the same text', () => {
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
    () => assert.fail('no line'),
    terminal,
    () => now,
  );
  shown.show(at(0, 0));
  now = 10_000;
  shown.show(at(50_000, 0.5));
  shown.end();
  const all = written.join('');
  assert.match(all, /comparing .*█/);
  assert.match(all, /50000 events, 5000 events\/s, 50 %/);
});
