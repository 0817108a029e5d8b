// Which texts certainly never came before: Bloom filters (B. H. Bloom, "Space/time trade-offs in hash coding with allowable
// errors", Communications of the ACM 13(7), 1970). A text that seems to have come may never have.

const HASHES = 4;
/** At which about 1 of 150 new texts seems to have come before. */
export const BITS_PER_TEXT = 12;

/** For at most a number of texts that is known: of more, fewer are known as new. */
export class BloomFilter {
  readonly words: Uint32Array;

  constructor(words: Uint32Array | { readonly texts: number }) {
    this.words =
      words instanceof Uint32Array ? words : new Uint32Array(Math.ceil((words.texts * BITS_PER_TEXT) / 32));
  }

  /** false: certainly never added. */
  has(text: string, [a, b] = hashesOf(text)): boolean {
    for (let n = 0; n < HASHES; n++) {
      const bit = this.#bitOf(a, b, n);
      if (((this.words[bit >>> 5] ?? 0) & (1 << (bit & 31))) === 0) return false;
    }
    return true;
  }

  /** Returns whether it certainly never was added before. */
  add(text: string): boolean {
    const [a, b] = hashesOf(text);
    let isNew = false;
    for (let n = 0; n < HASHES; n++) {
      const bit = this.#bitOf(a, b, n);
      const [word, mask] = [bit >>> 5, 1 << (bit & 31)];
      const before = this.words[word] ?? 0;
      if ((before & mask) === 0) isNew = true;
      this.words[word] = before | mask;
    }
    return isNew;
  }

  #bitOf(a: number, b: number, n: number): number {
    return ((a + Math.imul(n, b)) >>> 0) % (this.words.length * 32);
  }
}

/** Two hashes of the text, from which the others are made; the second is odd. */
function hashesOf(text: string): readonly [number, number] {
  let [a, b] = [0x811c9dc5, 0x01000193];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ code, 0x85ebca6b) ^ (b >>> 13);
  }
  return [a, b | 1];
}

/** Texts of the first layer; each next one takes twice as many. */
const FIRST_TEXTS = 32_768;

/** `texts`: how many were added. */
export type FilterLayer = { readonly filter: BloomFilter; texts: number };

/** For any number of texts: it grows by layers. */
export class GrowingFilter {
  readonly layers: FilterLayer[];

  constructor(layers: readonly FilterLayer[] = []) {
    this.layers = [...layers];
  }

  /** false: certainly never added. */
  has(text: string): boolean {
    const hashes = hashesOf(text);
    return this.layers.some(({ filter }) => filter.has(text, hashes));
  }

  add(text: string): void {
    let last = this.layers.at(-1);
    if (last === undefined || last.texts >= FIRST_TEXTS * 2 ** (this.layers.length - 1)) {
      last = { filter: new BloomFilter({ texts: FIRST_TEXTS * 2 ** this.layers.length }), texts: 0 };
      this.layers.push(last);
    }
    last.filter.add(text);
    last.texts++;
  }
}
