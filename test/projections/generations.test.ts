import { deepEqual, notEqual, rejects } from 'node:assert/strict';
import { test } from 'node:test';
import { checkpointsElsewhere, generationOf, logHolds } from '#projections/generations.ts';
import type { Db } from '#projections/rows.ts';
import { READ_VERSIONS } from '#src/domain/event-versions.ts';
import { EventDamaged } from '#src/ports/event-log.ts';

test('generations: releases that read other versions of events never share one', () => {
  const models = [{ name: 'job', version: 3 }];
  const named = (...events: string[]) => generationOf('first', 'migrations', models, ...events).id;
  notEqual(named('JobStarted:1,2'), named('JobStarted:1,2,3'));
  deepEqual(named(), named(READ_VERSIONS));
});

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

test('generations: an event that is damaged since its rows were made is still held by the log', async () => {
  const damaged = (position: string, problem: 'changed' | 'missing' = 'changed') => ({
    readStream: () =>
      Promise.reject(
        new EventDamaged({ from: position, to: position, stream: 'job-1', revision: '3', problem }),
      ),
  });
  const rows = { position: '0007', event: '3 an-id job-1' };
  deepEqual(await logHolds(damaged('0007'), rows), true);
  await rejects(logHolds(damaged('0008'), rows), EventDamaged);
  await rejects(logHolds(damaged('0007', 'missing'), rows), EventDamaged);
});
