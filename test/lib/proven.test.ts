// Given uses of a part and their outcomes, when its health is asked for, then it is proven by the last of them or by a probe.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proven } from '#src/lib/proven.ts';

function given({ kindOf }: { kindOf?: (cause: unknown) => string } = {}) {
  const world = { time: 0, works: true, probes: 0, problem: 'broken', changes: [] as string[] };
  const part = proven({
    async probe() {
      world.probes += 1;
      if (!world.works) throw new Error(world.problem);
    },
    ...(kindOf && { kindOf }),
    goodMs: 5000,
    badMs: 1000,
    changed: (failure) => world.changes.push(failure === null ? 'works' : String(failure.cause)),
    now: () => world.time,
  });
  const works = async () => (await part.check()) === null;
  return { world, part, works };
}

test('proven: unknown at first, so it is probed; a success is believed for its time', async () => {
  const { world, works } = given();
  assert.equal(await works(), true);
  world.works = false;
  world.time = 4999;
  assert.deepEqual([await works(), world.probes], [true, 1]);
  world.time = 5000;
  assert.deepEqual([await works(), world.probes], [false, 2]);
  assert.deepEqual(world.changes, ['Error: broken']);
});

test('proven: a use that worked needs no probe; one that failed is reported at once, and probed at the next check', async () => {
  const { world, part, works } = given();
  part.worked();
  assert.deepEqual([await works(), world.probes], [true, 0]);
  part.failed(new Error('no space'));
  assert.deepEqual([world.changes, world.probes], [['Error: no space'], 0]);
  world.works = false;
  assert.deepEqual([await works(), await works(), world.probes], [false, false, 1]);
  world.works = true;
  world.time = 1000;
  assert.deepEqual([await works(), world.probes], [true, 2]);
  assert.deepEqual(world.changes, ['Error: no space', 'works']);
});

test('proven: many failures are one change, and calls at the same time share one probe', async () => {
  const { world, part } = given();
  world.works = false;
  const found = await Promise.all(Array.from({ length: 10 }, () => part.check()));
  assert.ok(found.every((failure) => failure !== null));
  for (let n = 0; n < 5; n++) part.failed(new Error('again'));
  assert.equal(world.probes, 1);
  assert.deepEqual(world.changes, ['Error: broken']);
});

test('proven: a failure of another kind is a change; a use that fails does not hide what the probe found', async () => {
  const { world, part, works } = given({ kindOf: (cause) => String(cause).replace(/ \(.*/, '') });
  world.works = false;
  part.failed(new Error('no answer (of a use)'));
  world.problem = 'refused';
  assert.equal(await works(), false);
  part.failed(new Error('no answer (of a use)'));
  assert.deepEqual(
    [String((await part.check())?.cause), world.probes, world.changes],
    ['Error: refused', 1, ['Error: no answer (of a use)', 'Error: refused']],
  );
  world.time = 1000;
  world.problem = 'refused (another cause of that kind)';
  assert.deepEqual([await works(), world.probes, world.changes.length], [false, 2, 2]);
  world.time = 2000;
  world.problem = 'no answer';
  assert.equal(await works(), false);
  part.worked();
  assert.deepEqual(world.changes.slice(2), ['Error: no answer', 'works']);
});
