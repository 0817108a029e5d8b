// A copy of the bytes of a body that arrives in pieces of any size: for a caller who asked for the answer of its target.
const FIRST_BYTES = 4096;

export class BodyCopy {
  #bytes = new Uint8Array(FIRST_BYTES);
  #used = 0;

  /** Adds the bytes of `from` from `start` to before `end`. */
  add(from: Uint8Array, start: number, end: number): void {
    const used = this.#used + end - start;
    if (used > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(used, 2 * this.#bytes.length));
      larger.set(this.#bytes.subarray(0, this.#used));
      this.#bytes = larger;
    }
    this.#bytes.set(from.subarray(start, end), this.#used);
    this.#used = used;
  }

  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#used);
  }
}
