// A subscription to the embedded log: pages from the position last delivered, then a page for each commit noticed.
// No event is missed: positions are assigned under the one write lock, so none appears before a visible one.
import type { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers';
import { growingPause, sleep } from '#src/lib/time.ts';
import type { AbortSignalLike, LiveMessage } from '#src/ports/event-log.ts';
import { nextTurn } from './file.ts';
import { type LogReader, PAGE_ROWS, type Page, positionNumber } from './read.ts';

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
/** Between two polls when idle; `exclusive`: only operator commands write beside this process. */
const IDLE_MS = { shared: 25, exclusive: 250 };

/**
 * Notices this process's commits by a call, and other connections' by `PRAGMA data_version`, which reads shared memory.
 * Polls only while a subscriber waits.
 */
export function commitWatch(db: DatabaseSync, writers: keyof typeof IDLE_MS): CommitWatch {
  const version = db.prepare('PRAGMA data_version');
  const waiters = new Set<() => void>();
  let known = -1;
  let commits = 0;
  let quietPolls = writers === 'shared' ? BUSY_POLLS : Number.POSITIVE_INFINITY;
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
    const ms = Math.min(IDLE_MS[writers], Math.max(1, quietPolls - BUSY_POLLS));
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
  readonly reader: LogReader;
  readonly watch: CommitWatch;
  /** Throws if the log is closed or damaged: a subscription does not end silently. */
  readonly assertOpen: () => void;
  /** Called with each failure; after it, `assertOpen` throws if the file is damaged. */
  readonly refused: (cause: unknown) => unknown;
};

export type Subscription = {
  readonly after: string | null;
  readonly signal: AbortSignalLike;
};

export async function* sqliteSubscription(
  { reader, watch, assertOpen, refused }: SubscribeDependencies,
  { after, signal }: Subscription,
): AsyncGenerator<LiveMessage, void> {
  let cursor = positionNumber(after);
  let caughtUp = false;
  for (let failures = 0; !signal.aborted; ) {
    assertOpen();
    const found = readPage(cursor);
    if (found === null) {
      await sleep(growingPause(failures++, 1), signal);
      continue;
    }
    failures = 0;
    for (const event of found.page.events) {
      if (signal.aborted) return;
      yield { kind: 'event', event };
    }
    cursor = found.page.cursor;
    if (signal.aborted) return;
    if (!found.page.end) {
      await nextTurn();
      continue;
    }
    if (!caughtUp) {
      caughtUp = true;
      yield { kind: 'caught_up' };
    }
    await watch.changed(found.seen, signal);
  }

  /** null on a lock or a fault: the caller tries again from the same cursor. */
  function readPage(from: number): { seen: number; page: Page } | null {
    try {
      const seen = watch.count();
      return { seen, page: reader.page(from, PAGE_ROWS) };
    } catch (cause) {
      refused(cause);
      return null;
    }
  }
}
