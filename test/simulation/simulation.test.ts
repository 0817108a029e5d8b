// The whole service under seeds. More of them: `bun run simulate`.
import assert from 'node:assert/strict';
import process from 'node:process';
import { test } from 'node:test';
import { LONG } from '#test/support/given/property-runs.ts';
import { runSeed } from './run-seed.ts';

/** What the seeds must reach, or they prove nothing: kinds of world, faults and ends. */
const REACHED = [
  'paid world',
  'free world',
  'embedded world',
  'world of 3',
  'process ended',
  'orderly stop',
  'disturbance: freeze',
  'disturbance: reorg',
  'scan that leaves a transfer out',
  'append conflict',
  'append repeated by its ids',
  'appends stored together',
  'append that is stored late',
  'log call during an outage',
  'event SettlementUnknown',
  'event SettlementRetried',
  'event PaymentRejected',
  'event PaymentMissing',
  'event IdempotencyKeyReleased',
  'event PaymentRefunded',
  'event CheckpointSigned',
  'job interrupted_unknown',
  'job not_executed',
  'answer: replay',
  'answer: payment_unconfirmed',
  'answer: event_log_unavailable',
  'settle: settled_without_transfer',
  'settle: refused_and_moved',
  'pause of 8 days',
  'older backup of the log',
  'event PaymentDeferred',
  'event RunStarted',
  'event ScheduleCancelled',
  'run completed',
  'run skipped: missed',
  'run skipped: cancelled',
  'event SigningKeyRetired',
  'event CheckpointCosigned',
  'witness with a lost answer',
  'older backup that only witnesses notice',
  'rotation of the receipt key that fails',
];

const BLOCK = 50;
const BLOCKS = LONG ? 20 : 4;
const reached = new Set<string>();

for (let block = 0; block < BLOCKS; block++) {
  const first = block * BLOCK + 1;
  test(`seeds from ${first} on: the history of processes, chain and targets is consistent`, async () => {
    const rejections: unknown[] = [];
    const note = (reason: unknown) => void rejections.push(reason);
    process.on('unhandledRejection', note);
    for (let seed = first; seed < first + BLOCK; seed++) {
      const { violations, counts } = await runSeed(seed);
      assert.deepEqual(violations, [], `bun run simulate --seed ${seed} --trace`);
      for (const name of Object.keys(counts)) reached.add(name);
    }
    process.off('unhandledRejection', note);
    assert.deepEqual(rejections, []);
  });
}

test('the seeds reach every kind of world, fault and end', () => {
  assert.deepEqual(
    REACHED.filter((name) => !reached.has(name)),
    [],
  );
});

test('a seed decides everything: two runs have one trace, and another seed has another', async () => {
  for (const seed of [3, 14, 15]) {
    const [first, second, other] = [await runSeed(seed), await runSeed(seed), await runSeed(seed + 100)];
    assert.equal(first.digest, second.digest, `seed ${seed}`);
    assert.notEqual(first.digest, other.digest);
  }
});
