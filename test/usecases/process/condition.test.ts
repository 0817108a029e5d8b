import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sentenceOf } from '#src/domain/monitoring/conditions.ts';
import { Conditions } from '#src/usecases/process/condition.ts';
import { collectingLogger, manualClock } from '#test/support/world/fakes.ts';

function register() {
  const clock = manualClock();
  const logger = collectingLogger();
  return { clock, logger, conditions: new Conditions(clock, logger) };
}

test('a condition is logged when it begins and when it is over, however often it is stated', () => {
  const { logger, conditions } = register();
  for (let n = 0; n < 3; n++) conditions.set('recovery', 'unclosable');
  for (let n = 0; n < 3; n++) conditions.set('recovery', null);
  assert.deepEqual(
    logger.lines.map(({ level, message }) => `${level} ${message}`),
    [`error ${sentenceOf('recovery', 'unclosable', {})}`, 'info every interrupted job was closed'],
  );
});

test('a condition that is stated again keeps its beginning and takes the new facts', () => {
  const { clock, conditions } = register();
  conditions.set('recovery', 'unclosable', { jobs: 1 });
  const since = conditions.of('recovery')?.since;
  clock.advance(60_000);
  conditions.set('recovery', 'unclosable', { jobs: 2 });
  assert.deepEqual(
    conditions.list().map((each) => [each.part, each.code, each.since, each.facts]),
    [['recovery', 'unclosable', since, { jobs: 2 }]],
  );
  conditions.set('recovery', null);
  assert.deepEqual([conditions.of('recovery'), conditions.list()], [null, []]);
});
