// Work beside the calls: looks at its candidates again and again, until the process stops. What a look finds is decided by
// the streams, so any number of processes may look at the same item.
import { anyOf, Cancel } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import { type AbortSignalLike, EventLogUnavailable, EventUnreadable } from '#src/ports/event-log.ts';
import type { LogFields, Logger } from '#src/ports/logger.ts';
import { isOutage } from '#src/ports/outage.ts';
import { type StreamWatch, streamWatch } from './watch.ts';

export type WorkerDeps = {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Aborts when the process is asked to stop: nothing is looked at any more. */
  readonly stopping?: AbortSignalLike | undefined;
};

/** `over`: the item needs no further look. */
export type Look = 'over' | 'later';

export type Work<T> = {
  /**
   * ms to the next pass. `completed`: every candidate was looked at, and nothing failed. A number: the same after each.
   */
  readonly pauseMs: number | ((completed: boolean) => number);
  /** ms to the first pass. */
  readonly firstMs?: number;
  /** false: nothing is looked at in this pass. */
  readonly ready?: () => Promise<boolean>;
  readonly candidates: () => Promise<readonly T[]>;
  /** Names the item among the candidates. */
  readonly keyOf: (item: T) => string;
  /** Items that are looked at in parallel, so that their appends are committed together. */
  readonly atOnce?: number;
  readonly look: (item: T, watch: Pick<StreamWatch, 'unchangedFor'>) => Promise<Look>;
  /** Runs when all candidates were looked at; what it throws ends the pass, as a look's would. */
  readonly after?: () => Promise<void> | void;
  /** The log line of a look that failed other than by an unavailable part: a defect, unless it is a `warn`. */
  readonly failed: { readonly message: string; readonly level?: 'warn'; fields?(item: T): LogFields };
  /** Until the next look at an item whose look failed; doubles from `first` to `most`. */
  readonly repeatMs?: { readonly first: number; readonly most: number };
};

/** Work that is one thing, repeated after each pause, also where it has failed. */
export function repeated(
  deps: WorkerDeps,
  {
    run,
    ...work
  }: Pick<Work<null>, 'pauseMs' | 'firstMs' | 'failed'> & { readonly run: () => Promise<void> },
): Worker<null> {
  return new Worker<null>(deps, {
    ...work,
    candidates: async () => [null],
    keyOf: () => '',
    look: async () => {
      await run();
      return 'later';
    },
    repeatMs: { first: 0, most: 0 },
  });
}

export class Worker<T> {
  readonly #deps: WorkerDeps;
  readonly #work: Work<T>;
  readonly #watch: StreamWatch;
  readonly #failures: Failures;
  /** Causes of the failures that exist now: one line for each, however many items it concerns and however often. */
  readonly #logged = new Set<string>();
  #bell = new Cancel();

  constructor(deps: WorkerDeps, work: Work<T>) {
    this.#deps = deps;
    this.#work = work;
    this.#watch = streamWatch(deps.clock);
    this.#failures = new Failures(deps.clock, work.repeatMs);
  }

  /** Resolves when `stopping` has aborted and the pass in hand has ended. Never rejects. */
  async run(): Promise<void> {
    const { pauseMs, firstMs = 0 } = this.#work;
    if (firstMs > 0) await this.#rest(firstMs);
    while (!this.#isStopping()) {
      const completed = await this.pass();
      await this.#rest(typeof pauseMs === 'number' ? pauseMs : pauseMs(completed));
    }
  }

  /** Ends the pause before the next pass. */
  wake(): void {
    this.#bell.abort();
  }

  /** One pass. Returns whether every candidate was looked at and nothing failed. Never throws. */
  async pass(): Promise<boolean> {
    try {
      if ((await this.#work.ready?.()) === false) return false;
      await this.sweep();
      return this.#failures.size === 0 && !this.#isStopping();
    } catch (cause) {
      // An unavailable part is reported by its own adapter.
      if (!isOutage(cause) && !this.#isStopping()) this.#logOnce(cause, {});
      return false;
    }
  }

  /** Looks at every candidate that is due. Throws only if a part is unavailable, or if there are no candidates to be had. */
  async sweep(): Promise<void> {
    const { candidates, keyOf, atOnce = 1 } = this.#work;
    try {
      const items = once(await candidates(), keyOf);
      const observed = new Set<string>();
      const open = new Set<string>();
      for (let at = 0; at < items.length && !this.#isStopping(); at += atOnce) {
        const next = items.slice(at, at + atOnce);
        const looks = await Promise.allSettled(next.map((item) => this.#look(item, observed)));
        for (const [i, item] of next.entries()) if (lookOf(looks[i]) === 'later') open.add(keyOf(item));
      }
      this.#watch.keepOnly(observed);
      this.#failures.keepOnly(open);
      if (this.#failures.size === 0) this.#logged.clear();
      await this.#work.after?.();
    } catch (error) {
      // What happened while the event log was unavailable was not observed.
      if (error instanceof EventLogUnavailable) this.#watch.reset();
      throw error;
    }
  }

  /** Items whose look failed at the last try, other than by an unavailable part; unreadable events count. */
  get failing(): number {
    return this.#failures.size;
  }

  /** Throws only if the event log, or another part, is unavailable. */
  async #look(item: T, observed: Set<string>): Promise<Look> {
    const { keyOf, look, failed } = this.#work;
    const key = keyOf(item);
    if (this.#isStopping() || this.#failures.rests(key)) return 'later';
    try {
      const found = await look(item, {
        unchangedFor: (place) => {
          observed.add(place.stream);
          return this.#watch.unchangedFor(place);
        },
      });
      this.#failures.forget(key);
      return found;
    } catch (cause) {
      if (isOutage(cause) && !(cause instanceof EventUnreadable)) throw cause;
      // Cut off by the end of the process.
      if (this.#isStopping()) return 'later';
      // One item that fails does not keep the others from being looked at.
      this.#failures.note(key);
      this.#logOnce(cause, failed.fields?.(item) ?? {});
      return 'later';
    }
  }

  #logOnce(cause: unknown, fields: LogFields): void {
    const text = String(cause);
    if (this.#logged.has(text)) return;
    this.#logged.add(text);
    const { logger } = this.#deps;
    const { message, level } = this.#work.failed;
    logger[level ?? (isOutage(cause) ? 'error' : 'bug')](message, { ...fields, cause });
  }

  #isStopping(): boolean {
    return this.#deps.stopping?.aborted === true;
  }

  async #rest(ms: number): Promise<void> {
    const { clock, stopping } = this.#deps;
    const either = stopping === undefined ? null : anyOf(stopping, this.#bell);
    await clock.sleep(ms, either?.signal ?? this.#bell);
    either?.release();
    this.#bell = new Cancel();
  }
}

/**
 * How long a pause of `ms` lasts that begins now and ends at a multiple of its length, so that several end in one wake of the
 * process: 1.1 times as long at most, a tenth at least.
 */
export function sharedPause(ms: number, clock: Pick<Clock, 'monotonic'>): number {
  const left = ms - (clock.monotonic() % ms);
  return left < ms / 10 ? left + ms : left;
}

/** Throws what the look has thrown. */
function lookOf(look: PromiseSettledResult<Look> | undefined): Look {
  if (look?.status === 'rejected') throw look.reason;
  return look?.value ?? 'later';
}

const once = <T>(items: readonly T[], keyOf: (item: T) => string): readonly T[] => [
  ...new Map(items.map((item) => [keyOf(item), item])).values(),
];

/** Items whose look failed, each until its next look. */
class Failures {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #repeatMs: { readonly first: number; readonly most: number };
  readonly #items = new Map<string, { readonly tries: number; readonly until: number }>();

  constructor(clock: Pick<Clock, 'monotonic'>, repeatMs = { first: 5000, most: 300_000 }) {
    this.#clock = clock;
    this.#repeatMs = repeatMs;
  }

  get size(): number {
    return this.#items.size;
  }

  note(key: string): void {
    const { first, most } = this.#repeatMs;
    const { tries } = this.#items.get(key) ?? { tries: 0 };
    const until = this.#clock.monotonic() + Math.min(most, first * 2 ** tries);
    this.#items.set(key, { tries: tries + 1, until });
  }

  rests(key: string): boolean {
    return this.#clock.monotonic() < (this.#items.get(key)?.until ?? 0);
  }

  forget(key: string): void {
    this.#items.delete(key);
  }

  keepOnly(keys: ReadonlySet<string>): void {
    for (const key of this.#items.keys()) if (!keys.has(key)) this.#items.delete(key);
  }
}
