// RFC 6962 §2.1 word for word, over whole lists of leaves: slow, plain, and written apart from the domain's code.
import { createHash } from 'node:crypto';

const hash = (...parts: readonly Uint8Array[]): Uint8Array =>
  new Uint8Array(createHash('sha256').update(Buffer.concat(parts)).digest());

/** The largest power of two smaller than n. */
const split = (n: number): number => 2 ** Math.ceil(Math.log2(n) - 1);

export const MTH = (d: readonly Uint8Array[]): Uint8Array => {
  const [only] = d;
  if (only === undefined) return hash();
  if (d.length === 1) return hash(Uint8Array.of(0), only);
  const k = split(d.length);
  return hash(Uint8Array.of(1), MTH(d.slice(0, k)), MTH(d.slice(k)));
};

export const PATH = (m: number, d: readonly Uint8Array[]): Uint8Array[] => {
  if (d.length === 1) return [];
  const k = split(d.length);
  return m < k
    ? [...PATH(m, d.slice(0, k)), MTH(d.slice(k))]
    : [...PATH(m - k, d.slice(k)), MTH(d.slice(0, k))];
};

export const PROOF = (m: number, d: readonly Uint8Array[]): Uint8Array[] => SUBPROOF(m, d, true);

const SUBPROOF = (m: number, d: readonly Uint8Array[], b: boolean): Uint8Array[] => {
  if (m === d.length) return b ? [] : [MTH(d)];
  const k = split(d.length);
  return m <= k
    ? [...SUBPROOF(m, d.slice(0, k), b), MTH(d.slice(k))]
    : [...SUBPROOF(m - k, d.slice(k), false), MTH(d.slice(0, k))];
};
