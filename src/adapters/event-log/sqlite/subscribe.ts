// A subscription to the embedded log: pages from the position last delivered, then a page for each commit noticed.
// No event is missed: positions are assigned under the one write lock, so none appears before a visible one.
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { setTimeout } from 'node:timers';
import type { AbortSignalLike, EventLog, LiveMessage } from '#src/ports/event-log.ts';
import { nextTurn } from './file.ts';
import { type LogReader, PAGE_ROWS, positionNumber } from './read.ts';

/** Polls at 1 ms after another process's last commit; from then on each pause is twice as long as the one before. */
const BUSY_POLLS = 100;
/**
 * The longest pause, for events that no reader waits for: each read of a stream or of the head has them noticed by `look`.
 * Another service projects them itself; beside a service that has the log alone only commands write, and the keys' stream
 * is read each 5 s.
 */
export const IDLE_MS = { shared: 1000, alone: 60_000 };

/**
 * Notices this process's commits by a call, and other connections' by `PRAGMA data_version`, which reads shared memory.
 * Polls only while a subscriber waits.
 */
export class CommitWatch {
  readonly #version: StatementSync;
  readonly #idleMs: number;
  readonly #waiters = new Set<() => void>();
  #known = -1;
  #commits = 0;
  #quietPolls = BUSY_POLLS;
  #isPolling = false;
  #isStopped = false;

  constructor(db: DatabaseSync, idleMs: number) {
    this.#idleMs = idleMs;
    this.#version = db.prepare('PRAGMA data_version');
  }

  /** Number of commits noticed. Read it before a page, so that `changed` detects a commit that the page may have missed. */
  count(): number {
    const now = Number(this.#version.get()?.data_version);
    if (now === this.#known) return this.#commits;
    if (this.#known !== -1) this.#quietPolls = 0;
    this.#known = now;
    return ++this.#commits;
  }

  /** Wakes subscribers if another connection has committed: a reader of the log's head waits for those events. */
  look(): void {
    const before = this.#commits;
    if (this.count() !== before) this.#wake();
  }

  /** Returns what was read, and looks: subscribers get what others have committed as soon as anything is read. */
  lookAfter<T>(run: () => T): T {
    const found = run();
    this.look();
    return found;
  }

  /** Reports a commit of this connection. */
  announce(): void {
    this.#commits++;
    this.#wake();
  }

  /** Resolves when the count is no longer `seen`, when `signal` aborts, and when the watch stops. */
  changed(seen: number, signal: AbortSignalLike): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isStopped || signal.aborted || this.#commits !== seen) return resolve();
      const done = () => {
        this.#waiters.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#waiters.add(done);
      signal.addEventListener('abort', done, { once: true });
      this.#schedule();
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#wake();
  }

  #wake(): void {
    for (const waiter of [...this.#waiters]) waiter();
  }

  #schedule(): void {
    if (this.#isPolling || this.#isStopped || this.#waiters.size === 0) return;
    this.#isPolling = true;
    const ms = Math.min(this.#idleMs, 2 ** Math.max(0, this.#quietPolls - BUSY_POLLS));
    // A poll keeps no process alive.
    setTimeout(() => this.#poll(), ms).unref();
  }

  #poll(): void {
    this.#isPolling = false;
    if (this.#isStopped || this.#waiters.size === 0) return;
    this.#quietPolls++;
    try {
      this.look();
    } catch {
      // A lock or a fault: the next poll tries again.
    }
    this.#schedule();
  }
}

type Subscribed = {
  /** Waits for locks of other processes; throws if the log is closed or cannot be read. */
  readonly read: <T>(run: () => T) => Promise<T>;
  readonly reader: Pick<LogReader, 'page'>;
  readonly watch: CommitWatch;
};

export async function* sqliteSubscription(
  { read, reader, watch }: Subscribed,
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
