// Group commit: appends that meet share one transaction and one fsync, each in a savepoint of its own.
// Leaves to others: what an append means (sqlite-append.ts).
import type { DatabaseSync } from 'node:sqlite';
import { type Appended, EventLogUnavailable, WrongExpectedVersion } from '#src/ports/event-log.ts';
import type { Append, AppendCall, Stored } from './append.ts';
import { isBusy, nextTurn, stepAside } from './busy-retry.ts';

export type GroupCommit = {
  append(call: AppendCall): Promise<Appended>;
  /** Resolves when nothing is waiting. */
  drained(): Promise<void>;
  /** true from a failed commit until one succeeds. */
  readonly failing: boolean;
  /** Takes the write lock, and after a failed commit writes 64 kB and syncs; throws where that fails. */
  probe(): void;
};

export type GroupCommitOptions = {
  /** ms that an append waits for other processes' writes. */
  readonly lockTimeoutMs: number;
  /** After each durable commit of at least one new append, before its callers are answered. */
  readonly committed: (appends: number) => void;
};

/** Bounds how long one commit blocks the event loop, and how many callers one failing commit takes along. */
const GROUP_MAX = 256;

type Waiting = {
  readonly call: AppendCall;
  readonly until: number;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: Error) => void;
};
type Outcome = Stored | Error;

export function groupCommit(db: DatabaseSync, append: Append, options: GroupCommitOptions): GroupCommit {
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const savepoint = db.prepare('SAVEPOINT one');
  const release = db.prepare('RELEASE one');
  const undo = db.prepare('ROLLBACK TO one');
  const write = db.prepare('INSERT OR REPLACE INTO probe (one, bytes) VALUES (1, zeroblob(65536))');
  let waiting: Waiting[] = [];
  let draining: Promise<void> | null = null;
  let failing = false;

  const rollBack = () => {
    if (db.isTransaction) db.exec('ROLLBACK');
  };

  /** Where even ROLLBACK fails, the next group tries it again before it begins. */
  const rollBackQuietly = () => {
    try {
      rollBack();
    } catch {
      failing = true;
    }
  };

  /** A fault that took the whole transaction along (disk full, I/O error) is thrown; any other is this call's own. */
  function attempt(call: AppendCall): Outcome {
    savepoint.run();
    try {
      const stored = append(call);
      release.run();
      return stored;
    } catch (error) {
      if (!db.isTransaction) throw error;
      undo.run();
      release.run();
      return error instanceof WrongExpectedVersion ? error : new EventLogUnavailable({ cause: error });
    }
  }

  /** Runs in one go, so nothing of this process comes between BEGIN and COMMIT. */
  function commitGroup(group: readonly Waiting[]): void {
    let outcomes: Outcome[];
    let news = 0;
    try {
      outcomes = group.map(({ call }) => attempt(call));
      news = outcomes.filter((outcome) => !(outcome instanceof Error) && outcome.stored).length;
      if (news > 0) commit.run();
      else rollBack();
      if (news > 0) failing = false;
    } catch (cause) {
      failing = true;
      // At once: this connection's reads would see what was never committed.
      rollBackQuietly();
      for (const { reject } of group) reject(new EventLogUnavailable({ cause }));
      return;
    }
    if (news > 0) options.committed(news);
    settle(group, outcomes);
  }

  /** Takes the next group when it has the lock. false: not now, and whoever waited long enough was told so. */
  function tryGroup(): boolean {
    try {
      rollBack();
      begin.run();
    } catch (cause) {
      if (!isBusy(cause)) failing = true;
      const now = performance.now();
      const [over, still] = [
        waiting.filter(({ until }) => until <= now),
        waiting.filter(({ until }) => until > now),
      ];
      waiting = still;
      for (const { reject } of over) reject(new EventLogUnavailable({ cause }));
      return false;
    }
    commitGroup(waiting.splice(0, GROUP_MAX));
    return true;
  }

  async function drain(): Promise<void> {
    // The turn's end: whoever appends in this turn shares the transaction.
    await nextTurn();
    for (let tries = 0; waiting.length > 0; ) {
      if (tryGroup()) tries = 0;
      else await stepAside(tries++);
      // Callers just answered append again before the next group is taken, and other processes get their chance.
      await nextTurn();
    }
    draining = null;
  }

  return {
    append: (call) =>
      new Promise((resolve, reject) => {
        waiting.push({ call, until: performance.now() + options.lockTimeoutMs, resolve, reject });
        draining ??= drain();
      }),
    drained: async () => {
      while (draining !== null) await draining;
    },
    get failing() {
      return failing;
    },
    probe: () => {
      begin.run();
      try {
        if (failing) {
          write.run();
          commit.run();
          failing = false;
        }
      } finally {
        rollBack();
      }
    },
  };
}

function settle(group: readonly Waiting[], outcomes: readonly Outcome[]): void {
  for (const [i, { resolve, reject }] of group.entries()) {
    const outcome = outcomes[i];
    if (outcome instanceof Error) reject(outcome);
    else if (outcome !== undefined) resolve(outcome.appended);
  }
}
