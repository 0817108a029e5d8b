import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cancel, sleep } from '#src/lib/time.ts';

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
