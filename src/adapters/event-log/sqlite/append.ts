// Appends to the embedded log with group commit: concurrent appends share one transaction and one fsync, and a failed one
// is rolled back alone.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { isSqliteBusy, isSqliteUnreadable, pauseBetweenTries } from '#src/lib/sqlite-error.ts';
import {
  type Appended,
  EventDamaged,
  type ExpectedRevision,
  type NewEvent,
  type StreamAppend,
  WrongExpectedVersion,
} from '#src/ports/event-log.ts';
import { nextTurn, unavailable } from './file.ts';
import { checksumOf, positionText } from './row.ts';

type EventRow = {
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
};

/** With data and metadata as JSON: later changes by the caller have no effect. TypeError: JSON cannot hold them. */
export function eventRow({ id, type, data, metadata }: NewEvent): EventRow {
  return { id, type, data: JSON.stringify(data), metadata: JSON.stringify(metadata) };
}

type StreamRows = {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly EventRow[];
};

/** What is stored whole or not at all. */
type AppendCall = readonly StreamRows[];

export const streamRows = (appends: readonly StreamAppend[]): AppendCall =>
  appends.map(({ stream, expected, events }) => ({ stream, expected, events: events.map(eventRow) }));

/** `stored` false: the call is a repeat, its events are stored already. */
type Stored = { readonly appended: Appended; readonly stored: boolean };
type StoredEvent = { readonly id: string; readonly revision: number; readonly position: number };

/**
 * EventStoreDB's rules, inside a transaction that holds the write lock: new if the stream is at the expected revision; a
 * repeat if exactly these ids follow it in this order, also with later events behind them; anything else throws
 * `WrongExpectedVersion`.
 */
function appendRules(db: DatabaseSync, now: () => number): (rows: StreamRows) => Stored {
  const lastOf = db.prepare('SELECT revision FROM events WHERE stream = ? ORDER BY revision DESC LIMIT 1');
  const from = db.prepare(
    'SELECT id, revision, position FROM events WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ?',
  );
  const place = db.prepare('SELECT position FROM events WHERE stream = ? AND revision = ?');
  const head = db.prepare('SELECT max(position) AS position FROM events');
  // Not before it is needed: a file that cannot be written may lack a column.
  let insert: StatementSync | null = null;
  const insertion = () =>
    db.prepare(
      'INSERT INTO events (position, stream, revision, id, type, created, data, metadata, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    );

  function store({ stream, events }: StreamRows, last: number): Stored {
    const created = now();
    let revision = last;
    // No other connection can insert between this read and the insert: the write lock is held.
    let position = Number(head.get()?.position ?? 0);
    insert ??= insertion();
    for (const { id, type, data, metadata } of events) {
      revision++;
      position++;
      const checksum = checksumOf({ position, stream, revision, id, type, created, data, metadata });
      insert.run(position, stream, revision, id, type, created, data, metadata, checksum);
    }
    return { appended: { nextRevision: BigInt(revision), position: positionText(position) }, stored: true };
  }

  function storedFrom(stream: string, revision: bigint, count: number): StoredEvent[] {
    try {
      return from.all(stream, revision, count) as StoredEvent[];
    } catch (cause) {
      if (!isSqliteUnreadable(cause)) throw cause;
      // If the index is damaged, this throws too.
      const position = positionText(Number(place.get(stream, revision)?.position));
      const named = { stream, revision: String(revision) };
      throw new EventDamaged({ from: position, to: position, ...named, problem: 'unreadable' }, { cause });
    }
  }

  return (rows) => {
    const { stream, expected, events } = rows;
    const last = Number(lastOf.get(stream)?.revision ?? -1);
    const first = expected === 'no_stream' ? 0n : expected + 1n;
    if (first === BigInt(last + 1)) return store(rows, last);
    const found = first > last ? [] : storedFrom(stream, first, events.length);
    const repeat = repeatOf(found, events, Number(first));
    if (repeat === null) throw new WrongExpectedVersion(stream, expected, last < 0 ? null : BigInt(last));
    return repeat;
  };
}

/** The first call's result if `found` are exactly these events from revision `first` on. */
function repeatOf(found: readonly StoredEvent[], events: readonly EventRow[], first: number): Stored | null {
  const same = events.every(({ id }, i) => found[i]?.id === id && found[i]?.revision === first + i);
  const last = found[events.length - 1];
  if (!same || last === undefined) return null;
  return {
    appended: { nextRevision: BigInt(last.revision), position: positionText(last.position) },
    stored: false,
  };
}

export type GroupCommitOptions = {
  /** ms that an append waits for other processes' writes. */
  readonly lockTimeoutMs: number;
  readonly now: () => number;
  /** Throws if nothing may be written to the file now. */
  readonly assertWritable: () => void;
  /** Called after each durable commit of at least one new append, before its callers receive their results. */
  readonly committed: (appends: number) => void;
  /** Called if the lock cannot be had in time, and at once if a transaction fails for another reason. */
  readonly failed: (cause: unknown) => void;
};

/** Bounds how long one commit blocks the event loop, and how many callers one failing commit affects. */
const GROUP_MAX = 256;

/** More than an append of a job needs: on a full disk less may still fit. */
const PROBE_BYTES = 65_536;

type Waiting = {
  readonly call: AppendCall;
  readonly until: number;
  readonly resolve: (appended: readonly Appended[]) => void;
  readonly reject: (error: Error) => void;
};

export function groupCommit(db: DatabaseSync, options: GroupCommitOptions) {
  const { inTransaction, probe } = transactions(db, options.assertWritable);
  const attempt = attempts(db, options.now);
  let waiting: Waiting[] = [];
  let draining: Promise<void> | null = null;

  /** Returns false if the file is locked or cannot be written: callers wait for it until their time limit is over. */
  function commitGroup(): boolean {
    let group: readonly Waiting[] = [];
    let outcomes: readonly (readonly Stored[] | Error)[] = [];
    let stored = 0;
    try {
      inTransaction(() => {
        group = waiting.splice(0, GROUP_MAX);
        outcomes = group.map(({ call }) => attempt(call, group.length === 1));
        const appends = outcomes.flatMap((outcome) => (outcome instanceof Error ? [] : outcome));
        stored = appends.filter(({ stored }) => stored).length;
        return stored > 0;
      });
    } catch (cause) {
      const hasBegun = group.length > 0;
      if (!hasBegun) {
        const now = performance.now();
        group = waiting.filter(({ until }) => until <= now);
        waiting = waiting.filter(({ until }) => until > now);
      }
      if (group.length > 0 || !isSqliteBusy(cause)) options.failed(cause);
      for (const { reject } of group) reject(unavailable(cause));
      return hasBegun;
    }
    if (stored > 0) options.committed(stored);
    for (const [i, { resolve, reject }] of group.entries()) {
      const outcome = outcomes[i];
      if (outcome instanceof Error) reject(outcome);
      else if (outcome !== undefined) resolve(outcome.map(({ appended }) => appended));
    }
    return true;
  }

  async function drain(): Promise<void> {
    // Appends of the current turn share the transaction.
    await nextTurn();
    for (let tries = 0; waiting.length > 0; ) {
      if (commitGroup()) tries = 0;
      else await pauseBetweenTries(tries++);
      // Callers that just received a result can append to the next group, and other processes can take the lock.
      await nextTurn();
    }
    draining = null;
  }

  return {
    append: (call: AppendCall): Promise<readonly Appended[]> =>
      new Promise((resolve, reject) => {
        waiting.push({ call, until: performance.now() + options.lockTimeoutMs, resolve, reject });
        draining ??= drain();
      }),
    /** Resolves when no append is waiting. */
    drained: async (): Promise<void> => {
      while (draining !== null) await draining;
    },
    /** Writes and syncs; throws if that fails. */
    probe,
  };
}

/** Synchronous, so nothing else of this process happens between BEGIN and COMMIT. */
function transactions(db: DatabaseSync, assertWritable: () => void) {
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const write = db.prepare('INSERT OR REPLACE INTO probe (one, bytes) VALUES (1, zeroblob(?))');
  /** true from a failed commit until one succeeds. */
  let failing = false;

  function rollBack(): void {
    if (db.isTransaction) db.exec('ROLLBACK');
  }

  /** `work` returns whether to commit. Throws if the file is locked or cannot be written, and what `work` throws. */
  function inTransaction(work: () => boolean): void {
    try {
      // One whose ROLLBACK failed.
      rollBack();
      assertWritable();
      begin.run();
      if (work()) {
        commit.run();
        failing = false;
      } else rollBack();
    } catch (cause) {
      if (!isSqliteBusy(cause)) failing = true;
      // Immediately, since this connection's reads would return uncommitted events.
      try {
        rollBack();
      } catch {}
      throw cause;
    }
  }

  return {
    inTransaction,
    /** 64 kB after a failed commit, so that an append fits. */
    probe: () => inTransaction(() => write.run(failing ? PROBE_BYTES : 1).changes > 0),
  };
}

/**
 * Throws a fault that ended the whole transaction (disk full, I/O error); returns any other error of this call. `alone`: in
 * its group.
 */
function attempts(
  db: DatabaseSync,
  now: () => number,
): (call: AppendCall, alone: boolean) => readonly Stored[] | Error {
  const append = appendRules(db, now);
  const savepoint = db.prepare('SAVEPOINT one');
  const release = db.prepare('RELEASE one');
  const undo = db.prepare('ROLLBACK TO one');
  return (call, alone) => {
    // A single INSERT needs no savepoint, since SQLite undoes a statement that fails; nor does a call alone in its group.
    const several = call.flatMap(({ events }) => events).length > 1 && !alone;
    if (several) savepoint.run();
    try {
      const stored = call.map(append);
      if (several) release.run();
      return stored;
    } catch (error) {
      if (!db.isTransaction) throw error;
      if (several) {
        undo.run();
        release.run();
      }
      return error instanceof WrongExpectedVersion ? error : unavailable(error);
    }
  };
}
