// A store that opens and then fails at its work: growing pauses, one line when it begins and one when it is over.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Projector } from '#projections/projector.ts';
import type { Db } from '#projections/rows.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { type EventDamaged, EventLogUnavailable } from '#src/ports/event-log.ts';
import { loggerOver } from '#src/usecases/process/condition.ts';
import {
  appendAll,
  jobAppends,
  judgeBySignature,
  newEvent,
  PLAN,
} from '#test/support/given/job-histories.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import { pgliteHarness, silent } from '#test/support/log/read-store.ts';
import { quiet } from '#test/support/world/fakes.ts';

const PATIENCE_MS = 100_000;
const harness = pgliteHarness();
after(() => harness.end());

/** A store that is `away`, or opens and fails every batch while `broken`, and a clock that is hardly slept by but remembers the pauses. */
async function given() {
  const store = await harness.fresh();
  const state = {
    broken: false,
    away: false,
    failed: false,
    pauses: [] as number[],
    lines: [] as string[],
  };
  const refuses = async (): Promise<never> => {
    state.failed = true;
    throw new Error('the store does not do');
  };
  let db: Db | null = null;
  const handle = (real: Db): Db => {
    db ??= new Proxy(real, {
      get: (target, name) =>
        name === 'execute' && state.broken ? refuses : Reflect.get(target, name, target),
    });
    return db;
  };
  const system = systemClock();
  const clock: typeof system = {
    ...system,
    sleep(ms, signal) {
      // The first sleep after a failed batch is the pause.
      if (state.failed) state.pauses.push(ms);
      state.failed = false;
      return system.sleep(Math.min(ms, 1), signal);
    },
  };
  const note = (message: string) => void state.lines.push(message);
  const logger = loggerOver({ info: note, warn: note, error: note, bug: note }, { now: () => 0 });
  const open = async (schema: string) => (state.away ? refuses() : handle(await store.open(schema)));
  const log = memoryLog();
  await log.append('job-other', 'no_stream', [newEvent({ type: 'SomethingElse', data: {} })]);
  const deps = { log, store: { ...store, open }, clock, logger };
  return { state, log, runner: new Projector({ ...deps, judgeReceipt: judgeBySignature }) };
}

async function until(met: () => boolean): Promise<void> {
  const clock = systemClock();
  for (const end = clock.monotonic() + PATIENCE_MS; !met(); await clock.sleep(5)) {
    if (clock.monotonic() > end) throw new Error('waited too long');
  }
}

test('runner: batches that fail are repeated with growing pauses, and logged once', async () => {
  const { state, log, runner } = await given();
  state.broken = true;
  await appendAll(log, jobAppends(PLAN));
  await until(() => state.pauses.length >= 7);
  assert.deepEqual(state.pauses.slice(0, 7), [100, 200, 400, 800, 1000, 1000, 1000]);
  assert.deepEqual(state.lines, ['Events cannot be projected into the read models: the projector repeats.']);
  state.broken = false;
  assert.ok(await runner.caughtUp((await log.head()) ?? '', PATIENCE_MS));
  assert.deepEqual(state.lines, [
    'Events cannot be projected into the read models: the projector repeats.',
    'the read models are projected again',
  ]);
  // A success in between resets the pauses.
  state.pauses = [];
  state.broken = true;
  await appendAll(log, jobAppends({ ...PLAN, seed: 2 }));
  await until(() => state.pauses.length >= 2);
  assert.deepEqual(state.pauses.slice(0, 2), [100, 200]);
  assert.equal(state.lines.length, 3);
  await runner.stop();
});

test('runner: a store that fails and recovers without any event is logged too', async () => {
  const { state, runner } = await given();
  await until(() => runner.lag().lagEvents === 0);
  state.away = true;
  await until(() => state.pauses.length >= 3);
  assert.deepEqual(state.pauses.slice(0, 3), [100, 200, 400]);
  state.away = false;
  await until(() => state.lines.length >= 2);
  assert.deepEqual(state.lines, [
    'Events cannot be projected into the read models: the projector repeats.',
    'the read models are projected again',
  ]);
  await runner.stop();
});

test('runner: rows are not readable while no generation can be opened', async () => {
  const { state, log, runner } = await given();
  // Before the first look at the store nothing is known.
  assert.equal(runner.readable(), true);
  state.away = true;
  await until(() => state.pauses.length >= 1);
  assert.equal(runner.readable(), false);
  // A reader is answered, and keeps nothing of this process, however long the store is unavailable.
  await assert.rejects(runner.open(), { code: 'read_models_unavailable' });
  state.away = false;
  assert.ok(await runner.caughtUp((await log.head()) ?? '', PATIENCE_MS));
  assert.equal(runner.readable(), true);
  // The rows remain: the store's own health reports this outage.
  state.away = true;
  await until(() => state.pauses.length >= 3);
  assert.equal(runner.readable(), true);
  await runner.stop();
});

test('runner: an unavailable event log does not make the store unreadable', async () => {
  const store = await harness.fresh();
  const log = memoryLog();
  let asked = 0;
  const readAll = () => {
    asked++;
    return Promise.reject(new EventLogUnavailable());
  };
  const logger = { info() {}, warn() {}, error() {}, bug() {}, condition() {} };
  const deps = { store, clock: systemClock(), logger, judgeReceipt: judgeBySignature };
  const runner = new Projector({ ...deps, log: { ...log, readAll } });
  await until(() => asked >= 2);
  assert.equal(runner.readable(), true);
  await runner.stop();
});

test('runner: rows stop before a damaged event, which is logged once; what they have is read', async () => {
  const store = await harness.fresh();
  const log = memoryLog();
  await appendAll(log, jobAppends(PLAN));
  const whole = (await log.head()) ?? '';
  await appendAll(log, jobAppends({ ...PLAN, seed: 2 }));
  const [lost] = await log.readAll({ after: whole, max: 1 });
  log.spoil(lost ?? assert.fail());
  const lines: string[] = [];
  const note = (message: string) => void lines.push(message);
  const logger = loggerOver({ info: note, warn: note, error: note, bug: note }, { now: () => 0 });
  const deps = { store, log, clock: systemClock(), logger, judgeReceipt: judgeBySignature };
  const runner = new Projector(deps);
  assert.ok(await runner.caughtUp(whole, PATIENCE_MS));
  await until(() => lines.length > 0);
  assert.equal(await runner.caughtUp(lost?.position ?? '', 50), false);
  assert.deepEqual([runner.position(), runner.readable(), runner.lag().lagEvents], [whole, true, null]);
  assert.equal(runner.state, 'stopped_before');
  assert.equal((runner.stoppedAt() as EventDamaged).damage.from, lost?.position);
  await runner.open();
  assert.deepEqual(
    lines.filter((line) => !line.startsWith('the read models stop before damage')),
    [],
  );
  assert.equal(lines.length, 1);
  await runner.stop();
});

test('runner: rows stop before an event of a newer release, which is logged; what they have is read', async () => {
  const store = await harness.fresh();
  const log = memoryLog();
  await appendAll(log, jobAppends(PLAN));
  const whole = (await log.head()) ?? '';
  await log.append('job-newer', 'no_stream', [newEvent({ type: 'JobStarted', data: { v: 99 } })]);
  const lines: string[] = [];
  const note = (message: string) => void lines.push(message);
  const logger = { info: note, warn: note, error: note, bug: note, condition: () => undefined };
  const runner = new Projector({ store, log, clock: systemClock(), logger, judgeReceipt: judgeBySignature });
  await until(() => runner.stoppedAt() !== null && lines.length > 0);
  assert.deepEqual([runner.position(), runner.state], [whole, 'stopped_before']);
  assert.match(String(runner.stoppedAt()), /newer release: JobStarted version 99/);
  assert.match(lines.join(), /^the read models stop before an event of a newer release/);
  assert.equal(await runner.reachedHead(), false);
  await runner.stop();
});

test('runner: nothing is opened before `after` resolves, and a stop does not wait for it', async () => {
  const store = await harness.fresh();
  let opened = false;
  const shared = () => {
    opened = true;
    return store.shared();
  };
  const log = memoryLog();
  await appendAll(log, jobAppends(PLAN));
  const logger = { info() {}, warn() {}, error() {}, bug() {}, condition() {} };
  const deps = {
    log,
    store: { ...store, shared },
    clock: systemClock(),
    logger,
    judgeReceipt: judgeBySignature,
  };
  const never = new Projector(deps, { after: new Promise(() => undefined) });
  const begin = Promise.withResolvers<void>();
  const runner = new Projector(deps, { after: begin.promise });
  await quiet();
  await never.stop();
  assert.equal(opened, false);
  begin.resolve();
  assert.ok(await runner.caughtUp((await log.head()) ?? '', PATIENCE_MS));
  await runner.stop();
});

test('runner: the first comparison is waited for while the store is slow, not once it has failed, nor over an empty log', async () => {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => undefined);
  const store = { ...(await harness.fresh()), shared: () => promise };
  const [log, empty] = [memoryLog(), memoryLog()];
  await log.append('job-other', 'no_stream', [newEvent({ type: 'SomethingElse', data: {} })]);
  const deps = { store, clock: systemClock(), logger: silent, judgeReceipt: judgeBySignature };
  const [slow, idle] = [new Projector({ ...deps, log }), new Projector({ ...deps, log: empty })];
  assert.equal(await slow.compared(), null, 'longer than the limit');
  assert.equal(slow.isOpening(), true);
  assert.equal(idle.isOpening(), false);
  reject(new Error('the store does not answer'));
  await until(() => !slow.isOpening());
  await Promise.all([slow.stop(), idle.stop()]);
});
