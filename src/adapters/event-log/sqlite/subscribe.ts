// A subscription to the embedded log: pages from the position last delivered, then a page for each commit noticed.
// No event is missed: positions are assigned under the one write lock, so none appears before a visible one.
import type { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers';
import type { AbortSignalLike, EventLog, LiveMessage } from '#src/ports/event-log.ts';
import { nextTurn } from './file.ts';
import { type LogReader, PAGE_ROWS, positionNumber } from './read.ts';

export type CommitWatch = {
  /** Number of commits noticed. Read it before a page, so that `changed` detects a commit that the page may have missed. */
  count(): number;
  /** Reports a commit of this connection. */
  announce(): void;
  /** Resolves when the count is no longer `seen`, when `signal` aborts, and when the watch stops. */
  changed(seen: number, signal: AbortSignalLike): Promise<void>;
  stop(): void;
};

/** Polls at 1 ms after another process's last commit; later ones are less frequent. */
const BUSY_POLLS = 100;
/** Between two polls when idle. */
const IDLE_MS = 25;

/**
 * Notices this process's commits by a call, and other connections' by `PRAGMA data_version`, which reads shared memory.
 * Polls only while a subscriber waits.
 */
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
      if (known !== -1) quietPolls = 0;
      known = now;
      commits++;
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
      // A lock or a fault: the next poll tries again.
    }
    quietPolls++;
    if (commits !== before) wake();
    schedule();
  }
  function schedule(): void {
    if (polling || stopped || waiters.size === 0) return;
    polling = true;
    const ms = Math.min(IDLE_MS, Math.max(1, quietPolls - BUSY_POLLS));
    // A poll keeps no process alive.
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

export type SubscribeDependencies = {
  /** Waits for locks of other processes; throws if the log is closed or cannot be read. */
  readonly read: <T>(run: () => T) => Promise<T>;
  readonly reader: Pick<LogReader, 'page'>;
  readonly watch: CommitWatch;
};

export async function* sqliteSubscription(
  { read, reader, watch }: SubscribeDependencies,
  { after, signal }: Parameters<EventLog['subscribeAll']>[0],
): AsyncGenerator<LiveMessage, void> {
  let cursor = positionNumber(after);
  let caughtUp = false;
  while (!signal.aborted) {
    const { seen, page } = await read(() => ({ seen: watch.count(), page: reader.page(cursor, PAGE_ROWS) }));
    for (const event of page.events) {
      if (signal.aborted) return;
      yield { kind: 'event', event };
    }
    cursor = page.cursor;
    if (signal.aborted) return;
    if (!page.end) {
      await nextTurn();
      continue;
    }
    if (!caughtUp) {
      caughtUp = true;
      yield { kind: 'caught_up' };
    }
    await watch.changed(seen, signal);
  }
}
