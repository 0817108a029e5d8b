// An independent auditor of the transparency log: written from RFC 6962 and the C2SP documents with node:crypto, apart
// from the code of the relay, so that the two can disagree.
import assert from 'node:assert/strict';
import { createHash, createPublicKey, verify } from 'node:crypto';

export type Head = { readonly origin: string; readonly size: number; readonly root: string };

const ED25519 = 1;
const sha256 = (...parts: (Buffer | string)[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};
const leafHash = (data: Buffer) => sha256(Buffer.of(0), data);
const nodeHash = (left: Buffer, right: Buffer) => sha256(Buffer.of(1), left, right);

/** The largest power of two smaller than n. */
const splitOf = (n: number): number => 2 ** Math.floor(Math.log2(n - 1));

/** MTH of leaf hashes. */
export function rootOf(hashes: readonly Buffer[]): Buffer {
  const [first, second] = hashes;
  if (first === undefined) return sha256();
  if (second === undefined) return first;
  const split = splitOf(hashes.length);
  return nodeHash(rootOf(hashes.slice(0, split)), rootOf(hashes.slice(split)));
}

/** A signed note's head, where the key of the `vkey` line has signed it (C2SP signed-note). */
export function openCheckpoint(note: string, vkey: string): Head {
  const [, name = '', keyId = '', material = ''] = /^([^+\s]+)\+([0-9a-f]{8})\+(\S+)\n$/.exec(vkey) ?? [];
  const key = Buffer.from(material, 'base64');
  assert.deepEqual([key.length, key[0]], [33, ED25519], 'a verifier key of Ed25519');
  assert.equal(sha256(`${name}\n`, key).subarray(0, 4).toString('hex'), keyId);
  const [, text = '', base64 = ''] = /^([\s\S]+\n)\n— \S+ (\S+)\n$/u.exec(note) ?? [];
  assert.ok(note.includes(`\n— ${name} `), 'signed under the name of the key');
  const signature = Buffer.from(base64, 'base64');
  assert.equal(signature.subarray(0, 4).toString('hex'), keyId);
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: key.subarray(1).toString('base64url') };
  const publicKey = createPublicKey({ key: jwk, format: 'jwk' });
  assert.ok(verify(null, Buffer.from(text), publicKey, signature.subarray(4)), 'the signature of the note');
  const [origin = '', size = '', root = '', ...rest] = text.split('\n');
  assert.deepEqual([origin, rest], [name, ['']]);
  return { origin, size: Number(size), root };
}

/** Index of the leaf, where the proof file proves it in a checkpoint by this key (C2SP tlog-proof). */
export function openProof(file: string, data: Buffer, vkey: string): Head & { readonly index: number } {
  const border = file.indexOf('\n\n');
  const [format, place = '', ...lines] = file.slice(0, border).split('\n');
  assert.equal(format, 'c2sp.org/tlog-proof@v1');
  const index = Number(/^index (\d+)$/.exec(place)?.[1]);
  const head = openCheckpoint(file.slice(border + 2), vkey);
  const path = lines.map((line) => Buffer.from(line, 'base64'));
  const root = rootAbove(leafHash(data), index, head.size, path);
  assert.deepEqual([path.length, root.toString('base64')], [0, head.root], 'the proof leads to the root');
  return { ...head, index };
}

/** RFC 6962 §2.1.1, read backwards; takes from `path` what it uses. */
function rootAbove(leaf: Buffer, index: number, size: number, path: Buffer[]): Buffer {
  if (size <= 1) return leaf;
  const sibling = path.pop() ?? assert.fail('the proof is too short');
  const split = splitOf(size);
  return index < split
    ? nodeHash(rootAbove(leaf, index, split, path), sibling)
    : nodeHash(sibling, rootAbove(leaf, index - split, size - split, path));
}

/** Both roots that a consistency proof leads to (RFC 6962 §2.1.2, read backwards), base64. `oldRoot`: base64. */
export function rootsOf(from: number, to: number, proof: readonly string[], oldRoot: string) {
  const path = proof.map((line) => Buffer.from(line, 'base64'));
  const take = () => path.pop() ?? assert.fail('the proof is too short');
  const walk = (m: number, n: number, whole: boolean): [Buffer, Buffer] => {
    if (m === n) {
      const root = whole ? Buffer.from(oldRoot, 'base64') : take();
      return [root, root];
    }
    const last = take();
    const split = splitOf(n);
    if (m <= split) {
      const [before, after] = walk(m, split, whole);
      return [before, nodeHash(after, last)];
    }
    const [before, after] = walk(m - split, n - split, false);
    return [nodeHash(last, before), nodeHash(last, after)];
  };
  const roots = walk(from, to, true).map((root) => root.toString('base64'));
  assert.deepEqual(path, [], 'nothing of the proof is left over');
  return roots;
}

/** What is logged of a receipt. */
export const receiptLeaf = (jws: string): Buffer => sha256(jws);

/** What is logged of a key event: SHA-256 of canonical JSON, here of plain ASCII names and values. */
export const keyLeaf = (type: string, data: object): Buffer => sha256(canonical({ type, data }));

function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, of]) => `${JSON.stringify(name)}:${canonical(of)}`).join(',')}}`;
}

/** The leaves of an entry bundle, each as long as its uint16 says (C2SP tlog-tiles). */
export function entriesOf(bundle: Buffer): Buffer[] {
  const entries: Buffer[] = [];
  for (let at = 0; at < bundle.length; ) {
    const end = at + 2 + bundle.readUInt16BE(at);
    entries.push(bundle.subarray(at + 2, end));
    at = end;
  }
  return entries;
}

/** The hashes of a tile; those of the lowest level are `leafHashes` of the entries. */
export const hashesOf = (tile: Buffer): Buffer[] =>
  Array.from({ length: tile.length / 32 }, (_, at) => tile.subarray(32 * at, 32 * at + 32));

export const leafHashes = (entries: readonly Buffer[]): Buffer[] => entries.map(leafHash);
