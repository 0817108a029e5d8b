// Which keys a rebuild has written, in a fixed amount of memory: a Bloom filter. A key that it does not contain has no row,
// so no database is asked for it.

export type WrittenKeys = {
  add(table: string, key: string): void;
  /** false: never added. true: added, or rarely another key; the more keys, the more of them. */
  mayHave(table: string, key: string): boolean;
};

/** 16 MB: of 10 million keys one in 200 is asked for without need, of 100 million nearly all. */
const BITS = 2 ** 27;
const PROBES = 4;

export function writtenKeys(bits = BITS): WrittenKeys {
  const words = new Uint32Array(bits / 32);
  /** Whether all bits of the key were set; `sets`: they are now. */
  function visit(table: string, key: string, sets: boolean): boolean {
    // FNV-1a and a second hash of the same characters; the sums of both are as good as hashes of their own.
    let [a, b] = [0x811c9dc5, 0];
    for (const text of [table, key]) {
      for (let at = 0; at < text.length; at++) {
        const code = text.charCodeAt(at);
        a = Math.imul(a ^ code, 0x01000193);
        b = (Math.imul(b, 31) + code) | 0;
      }
    }
    b = Math.imul(b ^ (b >>> 15), 0x85ebca6b) | 1;
    let wasSet = true;
    for (let probe = 0; probe < PROBES; probe++) {
      a = (a + b) | 0;
      const at = (a ^ (a >>> 15)) & (bits - 1);
      const word = words[at >>> 5] ?? 0;
      const bit = 1 << (at & 31);
      if ((word & bit) !== 0) continue;
      wasSet = false;
      if (!sets) return false;
      words[at >>> 5] = word | bit;
    }
    return wasSet;
  }
  return {
    add: (table, key) => void visit(table, key, true),
    mayHave: (table, key) => visit(table, key, false),
  };
}
