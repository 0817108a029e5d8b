// The simulation sees defects: each is put back in the memory of a worker. All of them: `bun run simulate --defects`.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { rootPath } from '#test/support/process/runtime.ts';
import { replaceOnce } from './alter-module.ts';
import { DEFECTS } from './defects.ts';
import { runSeeds } from './seeds.ts';

/** Of different kinds, each seen by its first seeds. */
const FAST: Readonly<Record<string, string>> = {
  settles_before_key_is_claimed: 'settle_claimed',
  answer_before_durable: 'answer_durable',
  interrupted_job_resent: 'sent_once',
  recovery_without_observation: 'live_job_closed',
  checkpoint_repeated: 'checkpoints_consistent',
};
const WITHIN = 40;

test('every defect can be put back: its texts are in the modules exactly once', () => {
  for (const { name, changes } of DEFECTS)
    for (const change of changes) {
      const source = readFileSync(join(rootPath, change.file), 'utf8');
      assert.notEqual(replaceOnce(source, change), source, name);
    }
});

test('the table of defects is the committed one, and each was seen', () => {
  const table: readonly { readonly defect: string; readonly seenBy: string | null }[] = JSON.parse(
    readFileSync(join(import.meta.dirname, 'defects.json'), 'utf8'),
  );
  assert.deepEqual(
    table.map(({ defect }) => defect),
    DEFECTS.map(({ name }) => name),
  );
  assert.deepEqual(
    table.filter(({ seenBy }) => seenBy === null),
    [],
  );
});

for (const [name, invariant] of Object.entries(FAST))
  test(`${name}: seen within ${WITHIN} seeds`, async () => {
    const seenBy = new Set<string>();
    await runSeeds({
      from: 1,
      count: WITHIN,
      defect: name,
      workers: 1,
      onResult({ violations }) {
        for (const { invariant: by } of violations) seenBy.add(by);
        return !seenBy.has(invariant);
      },
    });
    assert.ok(seenBy.has(invariant), [...seenBy].join(', '));
  });
