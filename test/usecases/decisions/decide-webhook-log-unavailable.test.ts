// The log is unavailable while a decision is recorded: the caller gets an answer soon, and nothing accumulates after it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault } from '#src/domain/refusal.ts';
import { decide, decided } from '#test/support/given/given-decision.ts';
import { gate, lostAnswer, unavailable } from '#test/support/log/fakes-log.ts';
import { letPass, quiet } from '#test/support/world/fakes.ts';
import { type World, world } from '#test/support/world/fakes-world.ts';

const PATIENCE_MS = 2000;

async function faultOf(it: World): Promise<Fault> {
  const fault = await letPass(it.clock, decide(it)).catch((error: unknown) => error);
  assert.ok(fault instanceof Fault);
  return fault;
}

test('event_log_unavailable within seconds, with its cause for the operator; nothing is decided', async () => {
  const it = world();
  it.log.setAway(true);
  const fault = await faultOf(it);
  assert.deepEqual([fault.code, fault.retryAfterSeconds], ['event_log_unavailable', 5]);
  assert.ok(fault.cause instanceof Error);
  assert.ok(it.clock.monotonic() <= PATIENCE_MS, `${it.clock.monotonic()} ms`);
  it.log.setAway(false);
  assert.deepEqual(it.log.events, []);
});

test('a decision that was not returned is not written later: no append and no timer continues after the answer', async () => {
  const it = world();
  it.log.setAway(true);
  for (let i = 0; i < 20; i++) await faultOf(it);
  await quiet();
  assert.equal(it.clock.advanceToNext(), false);
  const { appends } = it.log;
  it.log.setAway(false);
  it.clock.advance(3_600_000);
  await quiet();
  assert.equal(it.log.appends, appends);
  assert.deepEqual(it.log.events, []);
});

test('a log that does not answer at all: the caller gets the error after the same time, and the append is not repeated', async () => {
  const it = world();
  const { frozen, open } = gate();
  let rejected = false;
  it.log.onNext('DecisionRecorded', async (store) => {
    await frozen(store).catch(() => undefined);
    rejected = true;
    return unavailable(store);
  });
  const fault = await faultOf(it);
  assert.equal(fault.code, 'event_log_unavailable');
  assert.equal(it.clock.monotonic(), PATIENCE_MS);
  open();
  await quiet();
  assert.ok(rejected);
  it.clock.advance(3_600_000);
  await quiet();
  assert.deepEqual([it.log.stored, it.clock.advanceToNext()], [['DecisionRecorded'], false]);
});

test('away for a moment, or its answer lost: repeated with the same event id, recorded once', async () => {
  for (const moment of [unavailable, lostAnswer]) {
    const it = world();
    it.log.onNext('DecisionRecorded', moment);
    const { decision } = await letPass(it.clock, decided(it));
    assert.deepEqual(
      it.log.events.map(({ data }) => data.decisionId),
      [decision.decisionId],
    );
    assert.equal(it.clock.advanceToNext(), false, 'no timer is left');
  }
});

test('while the event log lacks acknowledged events nothing is decided', async () => {
  const it = world(undefined, { recordIsWhole: async () => false });
  const fault = await faultOf(it);
  assert.deepEqual([fault.code, it.log.events], ['event_log_unavailable', []]);
  assert.match(fault.message, /lacks events that this relay has acknowledged: nothing was decided/);
});
