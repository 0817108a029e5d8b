// Notices commits: this process's by a call, other connections' by `PRAGMA data_version`, which is a look at shared
// memory. Polls only while somebody waits.
import type { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers';
import type { AbortSignalLike } from '#src/ports/event-log.ts';

export type CommitWatch = {
  /** Grows with every commit seen. Taken before a read, it tells `changed` what the read may have missed. */
  count(): number;
  /** This connection committed. */
  announce(): void;
  /** Resolves when the count is no longer `seen`, when `signal` aborts, and when the watch stops. */
  changed(seen: number, signal: AbortSignalLike): Promise<void>;
  stop(): void;
};

/** Polls of each ms after another process's last commit, before they become rarer. */
const BUSY_POLLS = 100;
const IDLE_MS = 25;

export function commitWatch(db: DatabaseSync): CommitWatch {
  const version = db.prepare('PRAGMA data_version');
  const waiters = new Set<() => void>();
  let known = -1;
  let commits = 0;
  let quietPolls = BUSY_POLLS;
  let polling = false;
  let stopped = false;

  function count(): number {
    const now = Number(version.get()?.data_version);
    if (now !== known) {
      known = now;
      commits++;
      quietPolls = 0;
    }
    return commits;
  }
  function wake(): void {
    for (const waiter of [...waiters]) waiter();
  }
  function poll(): void {
    polling = false;
    if (stopped || waiters.size === 0) return;
    const before = commits;
    try {
      count();
    } catch {
      // A lock or a fault: the next poll sees what this one could not.
    }
    quietPolls++;
    if (commits !== before) wake();
    schedule();
  }
  function schedule(): void {
    if (polling || stopped || waiters.size === 0) return;
    polling = true;
    const ms = Math.min(IDLE_MS, Math.max(1, quietPolls - BUSY_POLLS));
    // Waiting for others keeps no process alive.
    setTimeout(poll, ms).unref();
  }

  return {
    count,
    announce() {
      commits++;
      wake();
    },
    changed: (seen, signal) =>
      new Promise((resolve) => {
        if (stopped || signal.aborted || commits !== seen) return resolve();
        const done = () => {
          waiters.delete(done);
          signal.removeEventListener('abort', done);
          resolve();
        };
        waiters.add(done);
        signal.addEventListener('abort', done, { once: true });
        schedule();
      }),
    stop() {
      stopped = true;
      wake();
    },
  };
}
