// Whether a log still has the event that the rows end with.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventMark, logHolds } from '#projections/last-event.ts';
import { appendAll, jobAppends, PLAN } from '#test/support/job-histories.ts';
import { memoryLog } from '#test/support/memory-log.ts';

test('the same event at the same place of its stream and of the log, and nothing less', async () => {
  const log = memoryLog();
  for (const seed of [1, 2]) await appendAll(log, jobAppends({ ...PLAN, seed }));
  const last = log.events.at(-1) ?? assert.fail();
  const { position } = last;
  const told = { position, event: eventMark(last) };
  assert.equal(await logHolds(log, [told, { position: 'none', event: null }]), true);
  assert.equal(await logHolds(log, []), true);
  const others = [
    { position: log.events[0]?.position ?? '', event: told.event },
    { position, event: eventMark({ ...last, id: 'another' }) },
    { position, event: eventMark({ ...last, revision: last.revision + 1n }) },
    { position, event: eventMark({ ...last, stream: 'job-none' }) },
    { position, event: 'garbage' },
  ];
  for (const other of others) assert.equal(await logHolds(log, [told, other]), false, other.event);
});
