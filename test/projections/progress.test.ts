// When the rows count as caught up, and what is logged of a long replay.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Progress } from '#projections/progress.ts';
import { Cancel } from '#src/lib/time.ts';
import { collectingLogger, quiet } from '#test/support/world/fakes.ts';

function given() {
  const lines: (readonly [message: string, fields: unknown])[] = [];
  const time = { ms: 0 };
  const clock = {
    now: () => 0,
    monotonic: () => time.ms,
    sleep: async (ms: number) => {
      time.ms += ms;
    },
  };
  const none = () => assert.fail('no warning, no error');
  const silent = { warn: none, error: none, bug: none, condition: none };
  const logger = {
    ...silent,
    info: (message: string, fields?: unknown) => void lines.push([message, fields]),
  };
  return { progress: new Progress({ clock, logger }, () => {}), lines, time };
}

test('catch up: not before the first session, and not before the head that it found', async () => {
  const { progress, time } = given();
  assert.equal(await progress.ready(1000), false);
  assert.equal(time.ms, 1000, 'it waited for the given time');
  progress.begin('3', '5');
  assert.equal(await progress.ready(1), false);
  progress.moved('4', 1);
  assert.equal(await progress.ready(1), false);
  progress.moved('5', 1);
  assert.equal(await progress.ready(1), true);
});

test('catch up: a waiting caller gets the result at once', async () => {
  let answered: boolean | null = null;
  const clock = { now: () => 0, monotonic: () => 0, sleep: () => new Promise<void>(() => undefined) };
  const waiting = new Progress({ clock, logger: collectingLogger() }, () => {});
  waiting.begin(null, '1');
  const asked = waiting.ready(1000).then((ready) => {
    answered = ready;
  });
  assert.equal(answered, null);
  waiting.moved('1', 1);
  await asked;
  assert.equal(answered, true);
});

test('catch up: an empty log, and rows that stand at the head or beyond, have nothing to catch up with', async () => {
  for (const [from, head] of [
    [null, null],
    ['5', '5'],
    ['6', '5'],
  ] as const) {
    const { progress } = given();
    progress.begin(from, head);
    assert.equal(await progress.ready(1), true);
  }
});

test('catch up: a later session that begins behind is lag, not incompleteness; rows taken back are', async () => {
  const { progress } = given();
  progress.begin(null, '2');
  progress.moved('2', 2);
  progress.begin('2', '9');
  assert.equal(await progress.ready(1), true, 'the store was away: the rows are as they were');
  for (const back of ['1', null]) {
    assert.equal(progress.isTakenBack, false);
    progress.begin(back, '9');
    assert.equal(await progress.ready(1), false);
    assert.equal(progress.isTakenBack, true);
    progress.moved('9', 8);
    assert.equal(await progress.ready(1), true);
  }
});

test('catch up: a long replay is logged at its beginning, every five seconds and at its end; a short one is not', () => {
  const { progress, lines, time } = given();
  progress.begin(null, '1999');
  progress.moved('1999', 1999);
  assert.deepEqual(lines, []);
  progress.begin('1999', '9999');
  for (const position of ['2999', '3999', '4999', '5999', '6999', '7999', '8999', '9999']) {
    time.ms += 2000;
    progress.moved(position, 1000);
  }
  assert.deepEqual(lines, [
    ['replaying the event log into the read models', undefined],
    ['the read models are still being replayed', { events: 5000, seconds: 10, eventsPerSecond: 500 }],
    ['the read models are still being replayed', { events: 8000, seconds: 16, eventsPerSecond: 500 }],
    [
      'the read models have caught up with the event log',
      { events: 8000, seconds: 16, eventsPerSecond: 500 },
    ],
  ]);
  progress.moved('99999', 5000);
  assert.equal(lines.length, 4, 'what is projected live is no replay');
});

test('position: who waits until the rows move hears of each move, of none before, and of the end', async () => {
  const { progress, time } = given();
  const heard: (string | null)[] = [];
  const stopping = new Cancel();
  const waits = async (from: string | null) => {
    await progress.movedFrom(from, stopping);
    heard.push(progress.position);
  };
  progress.begin('3', '3');
  await waits('2');
  const moved = waits('3');
  progress.moved('3', 0);
  await quiet();
  assert.deepEqual(heard, ['3']);
  progress.moved('4', 1);
  await moved;
  const ended = waits('4');
  stopping.abort();
  await ended;
  assert.deepEqual([heard, time.ms], [['3', '4', '4'], 0]);
});
