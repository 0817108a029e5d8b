// Notices appends: this process's by a call, others' by an endless read of the server that tells of each event. It
// only wakes subscribers, who then read pages, so nothing depends on what it tells: where it fails, is dropped as too
// slow or hangs, subscribers wake by the clock and it is made anew.
import { clearTimeout, setTimeout } from 'node:timers';
import { growingPause, sleep } from '#src/lib/time.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import type { EventStoreConnection } from './connection.ts';
import { liveRequest } from './messages.ts';

export type AppendWatch = {
  /** Grows with every notice. Taken before a read, it tells `changed` what the read may have missed. */
  count(): number;
  /** This process appended. */
  announce(): void;
  /** true when the count is no longer `seen`, when `signal` aborts and when the watch stops; false: it is time to look. */
  changed(seen: number, signal: AbortSignalLike): Promise<boolean>;
  /** A look found what no notice had told of: the endless read is made anew. */
  deaf(): void;
  stop(): void;
};

/** Between two looks without a notice; oftener while no endless read stands. */
const LOOK_MS = 1000;
const LOOK_UNTOLD_MS = 200;
/** An endless read that has not begun by then hangs. */
const BEGINS_WITHIN_MS = 5000;

export function appendWatch(listen: EventStoreConnection['listen']): AppendWatch {
  const waiters = new Set<() => void>();
  const stopping = new AbortController();
  let notices = 0;
  let listening = false;
  let told = false;
  let since = 0;
  let cancel = () => {};

  function announce(): void {
    notices++;
    for (const waiter of [...waiters]) waiter();
  }

  /** The first message says that the read stands: what came before it is to be looked for, too. */
  function notice(): void {
    told = true;
    announce();
  }

  /** Lives from the first waiter on. */
  async function keepListening(): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted; failures = told ? 0 : failures + 1) {
      told = false;
      since = performance.now();
      const live = listen(liveRequest(), notice);
      cancel = live.cancel;
      await live.ended;
      await sleep(growingPause(told ? 0 : failures), stopping.signal);
    }
  }

  return {
    count: () => notices,
    announce,
    changed: (seen, signal) =>
      new Promise((resolve) => {
        if (stopping.signal.aborted || signal.aborted || notices !== seen) return resolve(true);
        const end = (noticed: boolean) => {
          clearTimeout(timer);
          waiters.delete(wake);
          signal.removeEventListener('abort', wake);
          resolve(noticed);
        };
        const wake = () => end(true);
        const timer = setTimeout(() => end(false), told ? LOOK_MS : LOOK_UNTOLD_MS);
        waiters.add(wake);
        signal.addEventListener('abort', wake, { once: true });
        if (!listening) {
          listening = true;
          void keepListening();
        }
      }),
    deaf() {
      if (told || performance.now() - since > BEGINS_WITHIN_MS) cancel();
    },
    stop() {
      stopping.abort();
      announce();
    },
  };
}
