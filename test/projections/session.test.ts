import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PendingEvents } from '#projections/pending.ts';
import { makeProgress } from '#projections/progress.ts';
import { Projector } from '#projections/projection.ts';
import { makePurge } from '#projections/purge.ts';
import type { Db } from '#projections/rows.ts';
import { lingerAfter, projectAll, type Session, type SessionDeps } from '#projections/session.ts';
import type { AbortSignalLike, RecordedEvent } from '#src/ports/event-log.ts';
import { memoryLog } from '#test/support/memory-log.ts';
import { silent } from '#test/support/read-store.ts';

const HEAD = { version: 1, position: '1', event: '0 id job-1' };

const event = (n: number): RecordedEvent => ({
  stream: 'other-1',
  revision: BigInt(n),
  position: String(n).padStart(9, '0'),
  id: `id ${n}`,
  type: 'SomethingElse',
  data: {},
  metadata: {},
  created: '2026-01-01T00:00:00.000Z',
});

type Time = { ms: number };

/** A session over rows that `execute` answers for; a sleep takes no time but that of its clock. */
function given(changes: {
  readonly signal: AbortSignalLike;
  readonly role: Session['role'];
  readonly execute: (time: Time) => Promise<unknown>;
  readonly pending?: (time: Time) => Partial<PendingEvents>;
  readonly progress?: Partial<SessionDeps['progress']>;
}): { readonly session: Session; readonly deps: SessionDeps } {
  const time = { ms: 0 };
  const db = { execute: () => changes.execute(time) } as unknown as Db;
  const clock = {
    now: () => 0,
    monotonic: () => time.ms,
    async sleep(ms: number) {
      time.ms += ms;
    },
  };
  const pending = {
    complete: true,
    full: false,
    interrupted: false,
    size: 0,
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
  const common = { log: memoryLog(), store, clock, logger: silent, judgeReceipt: async () => true };
  const session: Session = {
    generation: { id: 'one', log: 'first' },
    schema: 'one',
    db,
    pending: Object.defineProperties(
      pending,
      Object.getOwnPropertyDescriptors(changes.pending?.(time) ?? {}),
    ),
    projector: new Projector(HEAD, { models: [] }),
    role: changes.role,
    nearHead: false,
    kept: { usedAt: Number.POSITIVE_INFINITY, comparedAt: Number.POSITIVE_INFINITY },
    lingerMs: 100,
    restUntil: 0,
  };
  const deps: SessionDeps = {
    ...common,
    batchSize: 500,
    progress: { ...makeProgress(common), ...changes.progress },
    purge: makePurge(common, { jobs: null, receipts: null }),
    worked: () => undefined,
    signal: changes.signal,
  };
  return { session, deps };
}

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
  let looks = 0;
  const { session, deps } = given({
    signal,
    role: 'follows',
    async execute() {
      if (++looks === 50) signal.aborted = true;
      return [HEAD];
    },
  });
  await projectAll(session, deps);
  assert.equal(looks, 50);
  assert.equal(listeners.size, 0);
});

/** How many batches of `tookMs` are written in a second in which an event arrives each millisecond. */
async function batchesInASecond(isAwaited: boolean, tookMs: number): Promise<number> {
  const signal = {
    aborted: false,
    addEventListener: () => undefined,
    removeEventListener: () => undefined,
  };
  let batches = 0;
  let dropped = 0;
  const { session, deps } = given({
    signal,
    role: 'projects',
    progress: { isAwaited: () => isAwaited },
    async execute(time) {
      if (time.ms >= 1000) {
        signal.aborted = true;
        return [HEAD];
      }
      time.ms += tookMs;
      batches++;
      return [{ written: true }];
    },
    pending: (time) => ({
      // There is always one to come.
      get size() {
        return Math.max(1, Math.floor(time.ms) - dropped);
      },
      oldestArrival: () => dropped,
      first: () => [event(Math.max(dropped + 1, Math.floor(time.ms)))],
      dropThrough(position) {
        dropped = Number(position);
      },
    }),
  });
  // The look at the end of the second finds rows that another process has written.
  await projectAll(session, deps).catch(() => undefined);
  return batches;
}

test('runner: readers that wait get a batch after four times the length of the last one: a fifth of the thread', async () => {
  const batches = await batchesInASecond(true, 4);
  assert.ok(batches >= 40 && batches <= 51, `${batches} batches of 4 ms`);
  assert.ok((await batchesInASecond(false, 4)) <= 10);
});
