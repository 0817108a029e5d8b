// Part of the suite over every read store: in which order runs of schedules are started that are due at once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STREAM } from '#src/domain/events.ts';
import { at, hex, runFunded, runStarted, scheduleDefined } from '#test/support/given/given-events.ts';
import { appendAll, type PlannedAppend } from '#test/support/given/job-histories.ts';
import { commonLog, modelsOver, project, type ReadStoreHarness } from '#test/support/log/read-store.ts';

/** A schedule with one run, due `dueMs` after the samples' beginning. */
function bought(name: string, client: string, dueMs: number): PlannedAppend {
  const [scheduleId, jobId] = [`sch_${name}`, `job_${name}`];
  const planned = { scheduleId, run: 1, dueAt: at(dueMs) };
  return {
    stream: STREAM.schedule(scheduleId),
    events: [scheduleDefined({ scheduleId }), runFunded({ ...planned, jobId, client: hex(client) })],
  };
}

const started = (name: string): PlannedAppend => ({
  stream: STREAM.schedule(`sch_${name}`),
  events: [runStarted({ scheduleId: `sch_${name}`, run: 1, jobId: `job_${name}` })],
});

export function scheduleContract(harness: ReadStoreHarness): void {
  test('runs that are due are started by client address in turn, then by due time, those in progress counted', async () => {
    const store = await harness.fresh();
    const log = await commonLog();
    await appendAll(log, [
      ...[1, 2, 3, 4].map((n) => bought(`a${n}`, 'a', n)),
      bought('b1', 'b', 50),
      bought('b2', 'b', 51),
      bought('c1', 'c', 60),
      bought('later', 'd', 3_600_000),
    ]);
    const due = async (limit: number) => {
      const found = await modelsOver(await project(log, store)).schedule.due(at(60_000), limit);
      return found.map((id) => id.slice('sch_'.length));
    };
    assert.deepEqual(await due(100), ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
    assert.deepEqual(await due(3), ['a1', 'b1', 'c1']);
    await appendAll(log, [started('a1'), started('a2')]);
    assert.deepEqual(await due(100), ['b1', 'c1', 'b2', 'a3', 'a4', 'a1', 'a2']);
  });
}
