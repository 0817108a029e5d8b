import { deepEqual, rejects } from 'node:assert/strict';
import { test } from 'node:test';
import { checkpointsElsewhere } from '#projections/generations.ts';
import type { Db } from '#projections/rows.ts';

const generation = { id: 'id', log: 'log' };

test('generations: a checkpoint elsewhere that cannot be read in time fails the rollback check', async () => {
  const timeout = Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' });
  const answers = [async () => [{ schema: 'other' }], () => Promise.reject(timeout)];
  const db = { execute: () => answers.shift()?.() } as unknown as Db;
  await rejects(checkpointsElsewhere(db, generation, 'own'), timeout);
});

test('generations: every checkpoint elsewhere is returned', async () => {
  const answers = [[{ schema: 'one' }, { schema: 'two' }], [{ note: 'first' }], []];
  const db = { execute: async () => answers.shift() } as unknown as Db;
  deepEqual(await checkpointsElsewhere(db, generation, 'own'), ['first']);
});
