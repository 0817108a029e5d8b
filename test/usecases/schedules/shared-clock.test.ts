// The clock of the process beside the clock of the store.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RUN_TIMES } from '#src/domain/schedule/limits.ts';
import { SharedClock } from '#src/usecases/schedules/shared-clock.ts';
import { collectingLogger, manualClock } from '#test/support/world/fakes.ts';

const { clockToleranceMs, clockAgreesMs } = RUN_TIMES;

for (const [given, differsMs, agrees] of [
  ['ahead by as much as is tolerated', clockToleranceMs, true],
  ['ahead by more', clockToleranceMs + 1, false],
  ['behind by as much as is tolerated', -clockToleranceMs, true],
  ['behind by more', -clockToleranceMs - 1, false],
] as const)
  test(`a clock that is ${given}: ${agrees ? 'agrees' : 'differs until both have agreed for a minute'}`, async () => {
    const clock = manualClock();
    let offsetMs: number = differsMs;
    const vault = { now: async () => clock.now() - offsetMs };
    const shared = new SharedClock({ vault, clock, logger: collectingLogger() });
    assert.equal(await shared.agrees(), agrees);
    offsetMs = 0;
    clock.advance(clockAgreesMs - 1);
    assert.equal(await shared.agrees(), agrees);
    clock.advance(1);
    assert.equal(await shared.agrees(), true);
  });
