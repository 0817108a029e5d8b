// Tiles (C2SP tlog-tiles): the tree's hashes in blocks of 256, by level; their paths, the tree read from them, and its
// inclusion and consistency proofs (RFC 6962 §2.1.1 and §2.1.2).

import { fromBase64 } from '#src/domain/encoding.ts';
import { emptyRoot, type Hash, nodeHash } from './merkle.ts';

/** Levels of the tree in one tile. */
export const TILE_HEIGHT = 8;
export const TILE_WIDTH = 2 ** TILE_HEIGHT;
export const HASH_BYTES = 32;

/** The hashes of these texts, each in base64; null if one of them is none. */
export function hashesIn(texts: readonly string[]): readonly Hash[] | null {
  const hashes: Hash[] = [];
  for (const text of texts) {
    const hash = fromBase64(text);
    if (hash?.length !== HASH_BYTES) return null;
    hashes.push(hash);
  }
  return hashes;
}

/** `entries`: leaf data, not hashes; else 0 to 63. */
export type TileLevel = number | 'entries';

/** `width`: number of hashes; a partial tile has 1 to 255. */
export type TileName = { readonly level: TileLevel; readonly n: number; readonly width: number };

/** The available hashes of the n-th tile of a level, concatenated, 32 bytes each; null: none is available. */
export type ReadTile = (level: number, n: number) => Promise<Uint8Array | null>;

/** Parses `<L>/<N>[.p/<W>]` in its canonical form; null for anything else. */
export function parseTilePath(path: string): TileName | null {
  const [, level = '', high = '', low = '', partial] =
    /^(entries|0|[1-9]\d?)\/((?:x\d{3}\/)*)(\d{3})(?:\.p\/([1-9]\d{0,2}))?$/.exec(path) ?? [];
  if (level === '' || high.startsWith('x000/')) return null;
  const n = Number(high.replaceAll(/[x/]/g, '') + low);
  const width = partial === undefined ? TILE_WIDTH : Number(partial);
  if (!Number.isSafeInteger(n) || (partial !== undefined && width >= TILE_WIDTH)) return null;
  if (level === 'entries') return { level, n, width };
  return Number(level) > 63 ? null : { level: Number(level), n, width };
}

/** How many hashes of tile `n` at `level` a tree of `size` leaves has: 0 to 256. */
export function tileWidth(level: TileLevel, n: number, size: number): number {
  const complete = Math.floor(size / TILE_WIDTH ** (level === 'entries' ? 0 : level));
  return Math.max(0, Math.min(TILE_WIDTH, complete - n * TILE_WIDTH));
}

/** A tile that a tree of the requested size needs is missing. */
export class TileMissing extends Error {
  constructor(level: number, n: number) {
    super(`tile ${level}/${n} is missing or too short`);
    this.name = 'TileMissing';
  }
}

/** Reads nodes of the tree; reads each tile once. */
export type TreeReader = {
  /** MTH(D[from:to]) of RFC 6962 §2.1. Throws `TileMissing`. */
  root(from: number, to: number): Promise<Hash>;
};

export function treeReader(readTile: ReadTile): TreeReader {
  const tiles = new Map<string, Promise<readonly Uint8Array[]>>();
  const tileAt = (level: number, n: number) => {
    const name = `${level}/${n}`;
    const tile = tiles.get(name) ?? readTile(level, n).then(levelsOf);
    tiles.set(name, tile);
    return tile;
  };

  /** The root of the `index`-th complete subtree of 2^height leaves. */
  async function complete(height: number, index: number): Promise<Hash> {
    const level = Math.floor(height / TILE_HEIGHT);
    const above = height % TILE_HEIGHT;
    const width = TILE_WIDTH / 2 ** above;
    const n = Math.floor(index / width);
    const at = (index % width) * HASH_BYTES;
    const hash = (await tileAt(level, n))[above]?.slice(at, at + HASH_BYTES);
    if (hash?.length !== HASH_BYTES) throw new TileMissing(level, n);
    return hash;
  }

  async function root(from: number, to: number): Promise<Hash> {
    const size = to - from;
    if (size <= 0) return emptyRoot();
    const split = largestPowerBelow(size);
    if (split === 0) return complete(0, from);
    if (split * 2 === size && from % size === 0) return complete(Math.log2(size), from / size);
    return nodeHash(await root(from, from + split), await root(from + split, to));
  }
  return { root };
}

/** The hashes of a tile, then those of its complete pairs, and so on to its root. */
function levelsOf(hashes: Uint8Array | null): readonly Uint8Array[] {
  const levels = [hashes ?? new Uint8Array(0)];
  for (let below = levels[0]; below !== undefined && levels.length < TILE_HEIGHT; below = levels.at(-1)) {
    const pairs = Math.floor(below.length / (2 * HASH_BYTES));
    const level = new Uint8Array(pairs * HASH_BYTES);
    for (let at = 0; at < level.length; at += HASH_BYTES) {
      const right = 2 * at + HASH_BYTES;
      level.set(nodeHash(below.subarray(2 * at, right), below.subarray(right, right + HASH_BYTES)), at);
    }
    levels.push(level);
  }
  return levels;
}

/** The largest power of two smaller than `n`; 0 if there is none. */
export function largestPowerBelow(n: number): number {
  if (n < 2) return 0;
  let power = 1;
  while (power * 2 < n) power *= 2;
  return power;
}

/** PATH(index, D[size]): from the leaf's sibling upwards. Needs index < size. */
export async function inclusionProof(reader: TreeReader, index: number, size: number): Promise<Hash[]> {
  return path(index, 0, size);

  async function path(at: number, from: number, to: number): Promise<Hash[]> {
    const split = largestPowerBelow(to - from);
    if (split === 0) return [];
    return at < split
      ? [...(await path(at, from, from + split)), await reader.root(from + split, to)]
      : [...(await path(at - split, from + split, to)), await reader.root(from, from + split)];
  }
}

/** PROOF(from, D[to]); empty if there is nothing to prove: `from` is 0 or equals `to`. */
export async function consistencyProof(reader: TreeReader, from: number, to: number): Promise<Hash[]> {
  return from === 0 || from === to ? [] : subproof(from, 0, to, true);

  async function subproof(m: number, start: number, end: number, whole: boolean): Promise<Hash[]> {
    const n = end - start;
    if (m === n) return whole ? [] : [await reader.root(start, end)];
    const split = largestPowerBelow(n);
    return m <= split
      ? [...(await subproof(m, start, start + split, whole)), await reader.root(start + split, end)]
      : [...(await subproof(m - split, start + split, end, false)), await reader.root(start, start + split)];
  }
}
