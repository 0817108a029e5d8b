// Divides the event loop among connections. A target chooses how its bytes come: if each is a TLS record or a chunk of its
// own, a megabyte costs 20 ms, and a segment of one byte costs as much as a large one. So one turn of the loop decrypts and
// parses a bounded number of bytes, and all connections take turns.
import { setImmediate } from 'node:timers';

export type ReadSource = {
  /** Bytes that have arrived. */
  readonly received: number;
  /** Decrypts and parses at most BYTES_PER_READ. Returns what that cost, in bytes; 0 if there was nothing to read. */
  readSome(): number;
  /** Reads nothing from the kernel until `release`. */
  hold(): void;
  /** Reads from the kernel again, unless something of this source waits. */
  release(): void;
};

/** About 5 ms if every byte is a record of its own. */
export const BYTES_PER_TURN = 256 * 1024;
export const BYTES_PER_READ = 16 * 1024;
/**
 * A read that takes longer than its bytes say costs its time, so that a turn reads for 16 ms at most. In a handshake the target
 * chooses the work: a key of 16,384 bits takes 3 ms.
 */
export const BYTES_PER_MS = 16 * 1024;
/** What the start or the end of an attempt costs, with the work of its caller that follows: about 1 ms. */
export const STEP_COST = 16 * 1024;
/**
 * What may wait in this process, of all connections together. A read from the kernel returns up to 512 KiB: 200 hostile targets
 * would fill 100 MB at once. Beyond it the kernel keeps what arrives, for all connections.
 */
export const WAITING_BYTES_MAX = 4 * 1024 * 1024;

export class ReadTurns {
  readonly #now: () => number;
  /** Sources with bytes to read; the next one comes first. */
  readonly #waiting: ReadSource[] = [];
  /** Attempts that start or end in a later turn. */
  readonly #steps: (() => void)[] = [];
  #left = BYTES_PER_TURN;
  #isReading = false;
  #isEnding = false;
  readonly #open = new Set<ReadSource>();
  /** Bytes that have arrived and were not passed on, of all sources. */
  #waitingBytes = 0;
  #isFull = false;

  /** `now`: monotonic ms. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** true: no source may read from the kernel; each is released later. */
  get isFull(): boolean {
    return this.#isFull;
  }

  open(source: ReadSource): void {
    this.#open.add(source);
  }

  close(source: ReadSource): void {
    this.#open.delete(source);
  }

  /** Bytes of a source have arrived, or (negative) no longer wait. */
  count(bytes: number): void {
    this.#waitingBytes += bytes;
    if (!this.#isFull && this.#waitingBytes > WAITING_BYTES_MAX) {
      this.#isFull = true;
      for (const source of this.#open) source.hold();
    } else if (this.#isFull && this.#waitingBytes <= WAITING_BYTES_MAX / 2) {
      this.#isFull = false;
      // Who has received least comes first: the bound may be full again before the last one.
      const sources = [...this.#open].sort((a, b) => a.received - b.received);
      for (const source of sources) source.release();
    }
  }

  /**
   * Resolves in a later turn, and for a bounded number of attempts in each: the time limits of many attempts often end at the same
   * moment, and the last one does not wait for what the callers of the others do next.
   */
  step(): Promise<void> {
    return new Promise((resolve) => {
      this.#steps.push(resolve);
      this.#followUp();
    });
  }

  /** Reads from the source now if this turn has bytes left, otherwise in a later one. */
  add(source: ReadSource): void {
    this.#waiting.push(source);
    this.#readAll();
  }

  #readAll(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      while (this.#left > 0) {
        const source = this.#waiting.shift();
        if (source === undefined) break;
        const begun = this.#now();
        const cost = source.readSome();
        if (cost > 0) this.#waiting.push(source);
        this.#left -= Math.max(cost, (this.#now() - begun) * BYTES_PER_MS);
      }
    } finally {
      this.#isReading = false;
      // Small responses, which are most, need no turn of their own to be counted.
      if (this.#left <= BYTES_PER_TURN / 2) this.#followUp();
    }
  }

  #followUp(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    setImmediate(() => {
      this.#isEnding = false;
      this.#left = BYTES_PER_TURN;
      for (; this.#left > 0 && this.#steps.length > 0; this.#left -= STEP_COST) this.#steps.shift()?.();
      this.#readAll();
      if (this.#steps.length > 0) this.#followUp();
    });
  }
}
