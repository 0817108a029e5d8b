// Makes inclusion and consistency proofs (RFC 6962 §2.1.1 and §2.1.2) from tiles.
import type { Hash } from './merkle.ts';
import { largestPowerBelow, type TreeReader } from './tiles.ts';

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
