import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeProgress } from '#projections/progress.ts';
import { Projector } from '#projections/projection.ts';
import { makePurge } from '#projections/purge.ts';
import type { Db } from '#projections/rows.ts';
import { lingerAfter, projectAll, type Session, type SessionDeps } from '#projections/session.ts';
import { memoryLog } from '#test/support/memory-log.ts';
import { silent } from '#test/support/read-store.ts';

test('runner: a batch gathers for 20 times as long as the last one took, 100 ms at least and 500 ms at most', () => {
  assert.equal(lingerAfter(0), 100);
  assert.equal(lingerAfter(10), 200);
  assert.equal(lingerAfter(5000), 500);
});

test('runner: looking at another process’s rows leaves no listener on the signal of the shutdown', async () => {
  const listeners = new Set<() => void>();
  const signal = {
    aborted: false,
    addEventListener: (_: 'abort', listener: () => void) => void listeners.add(listener),
    removeEventListener: (_: 'abort', listener: () => void) => void listeners.delete(listener),
  };
  const head = { version: 1, position: '1', event: '0 id job-1' };
  let looks = 0;
  const execute = async () => {
    if (++looks === 50) signal.aborted = true;
    return [head];
  };
  const db = { execute } as unknown as Db;
  let ms = 0;
  const clock = {
    now: () => 0,
    monotonic: () => ms,
    // Each look is due by then: a session looks every second.
    async sleep() {
      ms += 1001;
    },
  };
  const idle = { complete: true, full: false, interrupted: false, size: 0 };
  const pending = {
    ...idle,
    oldestArrival: () => null,
    first: () => [],
    dropThrough: () => undefined,
    changed: () => new Promise<void>(() => undefined),
    wake: () => undefined,
  };
  const store = {
    disposable: false,
    layout: { version: '1', statements: [] },
    shared: async () => ({ execute: async () => [{ schema: 'one' }] }) as unknown as Db,
    open: async () => db,
  };
  const log = { ...memoryLog(), readStream: async () => Promise.reject(new Error('not read')) };
  const common = { log, store, clock, logger: silent, judgeReceipt: async () => true };
  const deps: SessionDeps = {
    ...common,
    batchSize: 1,
    progress: makeProgress(common),
    purge: makePurge(common, { jobs: null, receipts: null }),
    worked: () => undefined,
    signal,
  };
  const session: Session = {
    generation: { id: 'one', log: 'first' },
    schema: 'one',
    db,
    pending,
    projector: new Projector(head, { models: [] }),
    role: 'follows',
    nearHead: false,
    kept: { usedAt: 0, comparedAt: Number.POSITIVE_INFINITY },
    lingerMs: 100,
  };
  await projectAll(session, deps);
  assert.equal(looks, 50);
  assert.equal(listeners.size, 0);
});
