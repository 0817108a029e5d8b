// The hash of a body that arrives in pieces of any size. Nothing of the body is kept but one block of small pieces.
import { createHash } from 'node:crypto';

const BLOCK_BYTES = 4096;

export class BodyHash {
  /** So far. */
  bytes = 0;
  readonly #hash = createHash('sha256');
  /** Small pieces that are not hashed yet. A slice of what was received would keep all of it in memory. */
  #block: Uint8Array | null = null;
  #used = 0;

  /** Adds the bytes of `from` from `start` to before `end`. */
  add(from: Buffer, start: number, end: number): void {
    this.bytes += end - start;
    if (end - start >= BLOCK_BYTES / 4) {
      this.#flush();
      this.#hash.update(from.subarray(start, end));
      return;
    }
    this.#block ??= new Uint8Array(BLOCK_BYTES);
    if (this.#used + end - start > BLOCK_BYTES) this.#flush();
    for (let at = start; at < end; at++) this.#block[this.#used++] = from[at] ?? 0;
  }

  /** SHA-256, lower-case hex. To be called once. */
  digest(): string {
    this.#flush();
    return this.#hash.digest('hex');
  }

  #flush(): void {
    if (this.#used > 0 && this.#block !== null) this.#hash.update(this.#block.subarray(0, this.#used));
    this.#used = 0;
  }
}
