// The concurrency limit of payments that are being verified, shared fairly: a call to the facilitator costs its caller
// nothing, so without shares a few callers without money could hold all places. Each process applies it separately.
import { LIMITS } from '#src/domain/limits.ts';
import type { Places } from '#src/domain/places.ts';
import { type Refused, refused } from '#src/domain/refusal.ts';
import { type AbortSignalLike, Cancel } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import { once, type Release } from './process-limits.ts';

/** `client`: opaque key of the client address. `payer`: whose payment it is, as far as that is proven. */
export type VerifyCaller = { readonly client: string; readonly payer: string };

/** `ended`: aborts when it has its place or gives up. */
type Waiting = VerifyCaller & { readonly ended: Cancel; place: Release | null };

export type VerifyPlaces = Pick<Places, 'verifying' | 'verifyingPerClient' | 'waiting'>;

/**
 * At most LIMITS.verifiesInFlight in all, verifiesPerClient of one client address and verifiesPerPayer of one payer. Other
 * calls wait, at most LIMITS.verifiesWaiting of them: each place that becomes free goes to the next client address in turn. A process of few
 * executions has fewer places (`placesOf`).
 */
export class VerifyLimit {
  readonly #clock: Pick<Clock, 'sleep'>;
  readonly #places: VerifyPlaces;
  #verifying = 0;
  readonly #byClient = new Map<string, number>();
  readonly #byPayer = new Map<string, number>();
  #waiting = 0;
  /** Of each client address the calls that wait, oldest first; the address whose turn is next comes first. */
  readonly #queues = new Map<string, Waiting[]>();

  constructor(clock: Pick<Clock, 'sleep'>, places: VerifyPlaces) {
    this.#clock = clock;
    this.#places = places;
  }

  /** Admits the caller at once if it can. Otherwise waits up to `waitMs`, or until `ending` aborts, and then refuses. */
  enter(
    caller: VerifyCaller,
    waitMs: number,
    ending?: AbortSignalLike,
  ): Release | Promise<Release | Refused<'too_many_in_flight'>> {
    return this.#admits(caller) ? this.#begin(caller) : this.#wait(caller, waitMs, ending);
  }

  #admits({ client, payer }: VerifyCaller): boolean {
    return (
      this.#verifying < this.#places.verifying &&
      (this.#byClient.get(client) ?? 0) < this.#places.verifyingPerClient &&
      (this.#byPayer.get(payer) ?? 0) < LIMITS.verifiesPerPayer.max
    );
  }

  #begin({ client, payer }: VerifyCaller): Release {
    this.#verifying += 1;
    add(this.#byClient, client, 1);
    add(this.#byPayer, payer, 1);
    return once(() => {
      this.#verifying -= 1;
      add(this.#byClient, client, -1);
      add(this.#byPayer, payer, -1);
      while (this.#admitNext());
    });
  }

  async #wait(caller: VerifyCaller, waitMs: number, ending?: AbortSignalLike) {
    if (waitMs <= 0 || ending?.aborted || !this.#makeRoom(caller.client)) return tooManyVerifies();
    const waiting: Waiting = { ...caller, ended: new Cancel(), place: null };
    const leave = () => waiting.ended.abort();
    this.#queues.set(caller.client, [...(this.#queues.get(caller.client) ?? []), waiting]);
    this.#waiting += 1;
    ending?.addEventListener('abort', leave, { once: true });
    await this.#clock.sleep(waitMs, waiting.ended);
    ending?.removeEventListener('abort', leave);
    if (waiting.place !== null) return waiting.place;
    this.#remove(waiting);
    return tooManyVerifies();
  }

  /**
   * Gives a free place to the next client address that may have it; that address is the last one then. Returns false if
   * no call that waits may have one.
   */
  #admitNext(): boolean {
    for (const [client, queue] of this.#queues) {
      const next = queue.find((waiting) => this.#admits(waiting));
      if (next === undefined) continue;
      this.#remove(next);
      const rest = this.#queues.get(client);
      if (rest !== undefined) {
        this.#queues.delete(client);
        this.#queues.set(client, rest);
      }
      next.place = this.#begin(next);
      next.ended.abort();
      return true;
    }
    return false;
  }

  /**
   * If no more calls may wait, the newest of the address with the most leaves in favour of an address with fewer: those that
   * are verified count too, so that no address has all places where there are few.
   */
  #makeRoom(client: string): boolean {
    if (this.#waiting < this.#places.waiting) return true;
    let [most, newest] = [this.#callsOf(client) + 1, null as Waiting | null];
    for (const [other, queue] of this.#queues) {
      const calls = this.#callsOf(other);
      if (calls > most) [most, newest] = [calls, queue.at(-1) ?? null];
    }
    if (newest === null) return false;
    this.#remove(newest);
    newest.ended.abort();
    return true;
  }

  #callsOf(client: string): number {
    return (this.#byClient.get(client) ?? 0) + (this.#queues.get(client)?.length ?? 0);
  }

  #remove(waiting: Waiting): void {
    const queue = this.#queues.get(waiting.client) ?? [];
    const rest = queue.filter((other) => other !== waiting);
    this.#waiting -= queue.length - rest.length;
    if (rest.length > 0) this.#queues.set(waiting.client, rest);
    else this.#queues.delete(waiting.client);
  }
}

function add(counts: Map<string, number>, key: string, change: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}

const tooManyVerifies = () =>
  refused(
    'too_many_in_flight',
    'Too many payments are being verified: try again shortly, with the same payment header.',
    { retryAfterSeconds: 2 },
  );
