import assert from 'node:assert/strict';
import process from 'node:process';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { Cancel, sleep, withTimeout } from '#src/lib/time.ts';

test('Cancel: a sleep ends as soon as it aborts, and at once if it has aborted before', async () => {
  const cancel = new Cancel();
  const asleep = sleep(60_000, cancel, new AbortController().signal);
  cancel.abort();
  await asleep;
  assert.equal(cancel.aborted, true);
  await sleep(60_000, cancel);
});

test('Cancel: a sleep that ended in time no longer listens, and each listener is called once', async () => {
  const cancel = new Cancel();
  let calls = 0;
  const listener = () => {
    calls++;
  };
  cancel.addEventListener('abort', listener);
  cancel.addEventListener('abort', listener);
  await sleep(1, cancel);
  cancel.abort();
  cancel.abort();
  assert.equal(calls, 1);
  cancel.removeEventListener('abort', listener);
});

test('a timeout that is over before it begins is one, and nothing is written about it', async () => {
  const warnings: string[] = [];
  const note = ({ name }: Error) => warnings.push(name);
  process.on('warning', note);
  try {
    const late = () => new Error('late');
    await assert.rejects(withTimeout(new Promise(() => undefined), -692, late), /late/);
    await setImmediate();
  } finally {
    process.off('warning', note);
  }
  assert.deepEqual(warnings, []);
});
