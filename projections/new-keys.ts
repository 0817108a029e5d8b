// Which keys come for the first time, of rows that only this process has written from the first event on: a Bloom filter, so
// that no row is looked for where there was none. A key that seems to have come before is looked for in vain at worst.

const HASHES = 4;

export class NewKeys {
  readonly #bits: Uint32Array;

  /** Of about `bits / 12` keys nearly all are known as new. */
  constructor(bits: number) {
    this.#bits = new Uint32Array(Math.ceil(bits / 32));
  }

  /** true: the key certainly never came before. From now on it has. */
  add(table: string, key: string): boolean {
    let [a, b] = [0x811c9dc5, 0x01000193];
    for (const text of [table, key])
      for (let at = 0; at < text.length; at++) {
        a = Math.imul(a ^ text.charCodeAt(at), 0x01000193);
        b = Math.imul(b ^ text.charCodeAt(at), 0x85ebca6b) ^ (b >>> 13);
      }
    let isNew = false;
    for (let n = 0; n < HASHES; n++) {
      const bit = ((a + Math.imul(n, b | 1)) >>> 0) % (this.#bits.length * 32);
      const [word, mask] = [bit >>> 5, 1 << (bit & 31)];
      if (((this.#bits[word] ?? 0) & mask) === 0) isNew = true;
      this.#bits[word] = (this.#bits[word] ?? 0) | mask;
    }
    return isNew;
  }
}
