// What every projection must prove, for histories at random: the same rows however the events come.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { planChanges, type Rows } from '#projections/fold.ts';
import { judgeEvents } from '#projections/projection.ts';
import { READ_MODELS } from '#projections/registry.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { appendAll, histories, judgeBySignature, recorded } from '#test/support/given/job-histories.ts';
import { runs } from '#test/support/given/property-runs.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import { applyBatch, asStored, rowsAfter } from '#test/support/log/read-model-rows.ts';

const logged = histories.map(async (appends) => {
  const log = memoryLog();
  await appendAll(log, appends);
  return recorded(log);
});

test('projections: any split into batches gives the same rows', async () => {
  const cuts = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(logged, cuts, async (history, sizes) => {
      const events = await history;
      const rows: Rows = new Map();
      for (let at = 0, turn = 0; at < events.length; turn++) {
        const size = sizes[turn % sizes.length] ?? 1;
        await applyBatch(rows, events.slice(at, at + size), events);
        at += size;
      }
      assert.deepEqual(asStored(rows), asStored(await rowsAfter(events)));
    }),
    { numRuns: runs(200) },
  );
});

test('projections: a batch delivered again, whole or in part, changes no row that is there', async () => {
  await fc.assert(
    fc.asyncProperty(logged, fc.nat(), async (history, pick) => {
      const events = await history;
      const rows = await rowsAfter(events);
      const before = asStored(rows);
      // The runner passes over what lies behind its checkpoint; this is the second fence, each row's own position.
      const again = events.slice(pick % (events.length + 1)).filter((event) => event.type !== 'JobStarted');
      await applyBatch(rows, again, events);
      assert.deepEqual(asStored(rows), before);
    }),
    { numRuns: runs(200) },
  );
});

test('projections: one event changes a row at most once', async () => {
  await fc.assert(
    fc.asyncProperty(logged, async (history) => {
      for (const event of await judgeEvents(await history, judgeBySignature)) {
        const keys = planChanges(READ_MODELS, [event]).map(({ table, key }) => `${table} ${key}`);
        assert.equal(new Set(keys).size, keys.length);
      }
    }),
    { numRuns: runs(100) },
  );
});

test('projections: what is unknown, of another version, malformed or not to be stored is passed over', async () => {
  const job = (data: object): RecordedEvent => ({
    stream: 'job-x',
    revision: 0n,
    position: '1',
    id: 'id',
    type: 'PaymentReleased',
    data: { v: 1, jobId: 'j', lostKeyTo: 'k', releasedAt: '2026-01-01T00:00:00.000Z', ...data },
    metadata: {},
    created: '2026-01-01T00:00:00.000Z',
  });
  const judged = await judgeEvents(
    [
      job({}),
      job({ v: 2 }),
      job({ extra: 1 }),
      job({ jobId: 'nul \u0000' }),
      job({ jobId: 'half \ud800' }),
      { ...job({}), type: 'Unheard' },
    ],
    async () => assert.fail('there is no receipt to judge'),
  );
  assert.equal(judged.length, 1);
});
