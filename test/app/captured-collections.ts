// The Maps and Sets that a piece of code makes for itself, for tests of what they may hold.

export type Captured<T> = {
  readonly made: T;
  /** Entries of all of them now, and of the arrays and Sets in them. */
  entries(): number;
};

/** Runs `make` with the globals replaced: what it makes later is not captured. */
export function capturedCollections<T>(make: () => T): Captured<T> {
  const { Map: PlainMap, Set: PlainSet } = globalThis;
  const collections: (Map<unknown, unknown> | Set<unknown>)[] = [];
  class CapturedMap<K, V> extends PlainMap<K, V> {
    constructor(entries?: Iterable<readonly [K, V]> | null) {
      super(entries);
      collections.push(this);
    }
  }
  class CapturedSet<V> extends PlainSet<V> {
    constructor(values?: Iterable<V> | null) {
      super(values);
      collections.push(this);
    }
  }
  Object.assign(globalThis, { Map: CapturedMap, Set: CapturedSet });
  try {
    const made = make();
    return { made, entries: () => collections.reduce((sum, each) => sum + sizeOf(each), 0) };
  } finally {
    Object.assign(globalThis, { Map: PlainMap, Set: PlainSet });
  }
}

function sizeOf(held: unknown): number {
  if (Array.isArray(held)) return held.length;
  if (held instanceof Set) return held.size;
  if (!(held instanceof Map)) return 0;
  let size = held.size;
  for (const value of held.values()) size += sizeOf(value);
  return size;
}
