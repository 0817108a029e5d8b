// The scrub: all events in short turns, again after an hour, through outages, and no longer than the service.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ScannedLog } from '#src/ports/event-scan.ts';
import { scrubLog } from '#src/usecases/audit/scrub-log.ts';
import { newEvents } from '#test/support/contract/event-log-fixtures.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import { collectingLogger, manualClock, quiet } from '#test/support/world/fakes.ts';

const HOUR_MS = 3_600_000;

async function given(events: number) {
  const inner = memoryLog();
  for (let n = 0; n < events; n++) await inner.append(`given-${n}`, 'no_stream', newEvents(1));
  const clock = manualClock();
  const logger = collectingLogger();
  const ending = new AbortController();
  const begins = Promise.withResolvers<void>();
  const scans: { readonly after: string | null; readonly at: number }[] = [];
  const state = { tookMs: 2, failure: null as Error | null, accepts: true };
  const log: Pick<ScannedLog, 'scan' | 'health'> = {
    health: async () => (state.accepts ? { ok: true } : { ok: false, problem: 'damaged' }),
    async scan(options) {
      scans.push({ after: options.after, at: clock.monotonic() });
      assert.ok(options.max <= 64 && options.index, 'a short turn, with the index');
      if (state.failure !== null) throw state.failure;
      clock.advance(state.tookMs);
      return inner.scan(options);
    },
  };
  const scrub = scrubLog({ log, clock, logger, ending: ending.signal, after: begins.promise });
  const pass = async (until: () => boolean) => {
    for (await quiet(); !until(); await quiet()) assert.ok(clock.advanceToNext(), 'it waits for nothing');
  };
  return { inner, clock, logger, ending, begins, scans, state, scrub, pass };
}

test('scrub: begins when it may, reads every event in turns that take 5 % of the time, and again after an hour', async () => {
  const { clock, begins, scans, scrub, pass, ending } = await given(200);
  await quiet();
  assert.deepEqual([scans.length, scrub.lastPass()], [0, null]);
  begins.resolve();
  await pass(() => scrub.lastPass() !== null);
  assert.deepEqual(
    scans.map(({ at }) => at),
    [0, 40, 80, 120],
  );
  assert.equal(scrub.lastPass(), clock.now());
  await pass(() => scans.length === 5);
  assert.deepEqual([scans[4]?.at, scans[4]?.after], [HOUR_MS, null]);
  ending.abort();
  await scrub.ended;
});

test('scrub: takes half of the time while the log accepts no events, as no call is executed', async () => {
  const { begins, scans, state, scrub, pass, ending } = await given(200);
  state.accepts = false;
  begins.resolve();
  await pass(() => scrub.lastPass() !== null);
  assert.deepEqual(
    scans.map(({ at }) => at),
    [0, 4, 8, 12],
  );
  ending.abort();
  await scrub.ended;
});

test('scrub: an outage is repeated after a minute and not logged, a defect is', async () => {
  const { inner, clock, logger, begins, scans, state, scrub, pass, ending } = await given(3);
  begins.resolve();
  inner.setAway(true);
  await pass(() => scans.length === 2);
  assert.equal(scans[1]?.at, 60_000 + state.tookMs);
  assert.deepEqual(logger.lines, []);
  inner.setAway(false);
  state.failure = new TypeError('a defect');
  await pass(() => logger.lines.length > 0);
  assert.deepEqual(
    logger.lines.map(({ level, message }) => [level, message]),
    [['bug', 'the event log could not be scrubbed']],
  );
  state.failure = null;
  await pass(() => scrub.lastPass() !== null);
  assert.equal(scrub.lastPass(), clock.now());
  ending.abort();
  await scrub.ended;
});

test('scrub: ends with the service, before it begins and between two turns', async () => {
  const early = await given(3);
  early.ending.abort();
  await early.scrub.ended;
  assert.equal(early.scans.length, 0);
  const late = await given(200);
  late.begins.resolve();
  await late.pass(() => late.scans.length === 2);
  late.ending.abort();
  await late.scrub.ended;
  assert.deepEqual([late.scans.length, late.scrub.lastPass()], [2, null]);
});
