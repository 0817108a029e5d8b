// Whether the shared windows can be asked: each question has its time, the first that is not answered ends the asking,
// and it is tried again behind everybody's back. What is done meanwhile, its users decide.
import type { Logger } from '#src/ports/logger.ts';
import { inTime, pause } from './time.ts';

export type SharingOptions<Db> = {
  /** The handle may be another one each time. */
  readonly open: () => Promise<Db>;
  /** Answers where the store can be asked. */
  readonly probe: (db: Db) => Promise<unknown>;
  readonly logger: Logger;
  /** Ends the trying. */
  readonly ending: AbortSignal;
  /** ms that a question may take. */
  readonly limitMs: number;
  /** ms between two tries. */
  readonly retryMs: number;
};

export type Sharing<Db> = {
  /** null: there was no answer in time, or nobody asks for now. Never throws. */
  ask<T>(question: (db: Db) => Promise<T>): Promise<T | null>;
  /** Before it nobody asks. Resolves when the first try has its answer, or after `patienceMs`. */
  begin(patienceMs: number): Promise<void>;
};

/** Tries that are still waiting for a store that is frozen; each keeps a connection. */
const HANGING_MAX = 3;

export function startSharing<Db>(options: SharingOptions<Db>): Sharing<Db> {
  const { open, logger, ending, limitMs, retryMs } = options;
  let on = false;
  let hanging = 0;
  const asked = async <T>(question: (db: Db) => Promise<T>): Promise<T> => question(await open());

  function lost(cause: unknown): void {
    on = false;
    if (ending.aborted) return;
    logger.warn('quotas are counted by each process for itself: the shared windows do not answer', { cause });
    void regain();
  }

  async function regain(): Promise<void> {
    for (;;) {
      await pause(retryMs, ending);
      if (ending.aborted) return;
      // Quicker than an answer has to be: a store at the edge of its time is not taken up and given up by turns.
      if (hanging < HANGING_MAX && (await tried(limitMs / 2)) === null) break;
    }
    on = true;
    logger.warn('quotas are counted by all processes together again');
  }

  /** null: it answered. */
  async function tried(withinMs: number): Promise<{ readonly cause: unknown } | null> {
    hanging += 1;
    const answer = asked(options.probe).finally(() => {
      hanging -= 1;
    });
    try {
      await inTime(answer, withinMs);
      return null;
    } catch (cause) {
      return { cause };
    }
  }

  return {
    async ask(question) {
      if (!on) return null;
      try {
        return await inTime(asked(question), limitMs);
      } catch (cause) {
        if (on) lost(cause);
        return null;
      }
    },
    async begin(patienceMs) {
      const failed = await tried(patienceMs);
      if (failed === null) on = true;
      else lost(failed.cause);
    },
  };
}
