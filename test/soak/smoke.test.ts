// A soak of one minute on the embedded tier: nothing is lost, doubled, unrecorded or wrong. Growth needs longer runs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needsAnvil } from '#test/support/local-payments.ts';
import { runtimeName } from '#test/support/runtime.ts';
import { soakTier } from './tier.ts';

// The probe reads the heap of Bun; the service under Deno is loaded by the journeys of the Deno lane.
const needs = runtimeName === 'bun' ? needsAnvil() : { skip: true };

test('one minute of mixed load, with a facilitator that fails', needs, async () => {
  const minutes: number[] = [];
  const { counts, lost, doubled, unrecorded, wrong } = await soakTier('embedded', 1, ({ calls }) => {
    minutes.push(calls);
  });
  assert.deepEqual([lost, doubled, unrecorded, wrong], [0, 0, 0, []]);
  assert.ok(minutes.length === 1 && counts.calls > 20 && counts.reads > 20, JSON.stringify(counts));
});
