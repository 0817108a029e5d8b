// Notes, keys, cosignatures and Merkle trees written only from the texts of C2SP and RFC 6962 with node:crypto, and with nothing
// of src: what the relay makes is read with it, and what it makes is read by the relay. ML-DSA-44 is @noble/post-quantum's.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  verify,
} from 'node:crypto';
import { ml_dsa44 } from '@noble/post-quantum/ml-dsa';

export type C2spPublicKey = {
  readonly name: string;
  readonly type: 1 | 4 | 6;
  readonly publicKey: Buffer;
  readonly id: Buffer;
  readonly vkey: string;
};
export type C2spKey = C2spPublicKey & { readonly sign: (message: Buffer) => Buffer };

const sha256 = (...parts: readonly (Buffer | string)[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

export const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI_HEAD = Buffer.from('302a300506032b6570032100', 'hex');

/** `seed`: 32 bytes; random unless given. */
export function c2spKey(name: string, type: 1 | 4 | 6, seed?: Buffer): C2spKey {
  const { publicKey, sign: signs } = type === 6 ? mlDsaKey(seed) : ed25519Key(seed);
  return { ...c2spPublicKey(name, type, publicKey), sign: signs };
}

/** signed-note: key id = SHA-256(name ‖ 0x0A ‖ type ‖ public key)[:4]. */
export function c2spPublicKey(name: string, type: 1 | 4 | 6, publicKey: Buffer): C2spPublicKey {
  const id = sha256(`${name}\n`, Buffer.from([type]), publicKey).subarray(0, 4);
  const encoded = Buffer.concat([Buffer.from([type]), publicKey]).toString('base64');
  return { name, type, publicKey, id, vkey: `${name}+${id.toString('hex')}+${encoded}` };
}

function ed25519Key(seed?: Buffer) {
  const privateKey =
    seed === undefined
      ? generateKeyPairSync('ed25519').privateKey
      : createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: 'der', type: 'pkcs8' });
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  return {
    publicKey: Buffer.from(spki.subarray(-32)),
    sign: (message: Buffer) => Buffer.from(sign(null, message, privateKey)),
  };
}

function mlDsaKey(seed: Buffer = randomBytes(32)) {
  const { publicKey, secretKey } = ml_dsa44.keygen(Uint8Array.from(seed));
  return {
    publicKey: Buffer.from(publicKey),
    sign: (message: Buffer) => Buffer.from(ml_dsa44.sign(secretKey, message)),
  };
}

const line = ({ name, id }: C2spKey, signature: Buffer): string =>
  `— ${name} ${Buffer.concat([id, signature]).toString('base64')}\n`;

/** tlog-checkpoint. */
export const c2spCheckpointText = (origin: string, size: number, root: Buffer): string =>
  `${origin}\n${size}\n${root.toString('base64')}\n`;

/** signed-note: the text, an empty line and a line of each key of type 0x01. */
export const c2spNote = (text: string, ...keys: readonly C2spKey[]): string =>
  `${text}\n${keys.map((key) => line(key, key.sign(Buffer.from(text)))).join('')}`;

/** tlog-cosignature: the line of one cosigner. `time`: Unix seconds. */
export function c2spCosignature(text: string, key: C2spKey, time: number): string {
  return line(key, Buffer.concat([u64(time), key.sign(c2spMessage(text, key, time))]));
}

function c2spMessage(text: string, { name, type }: C2spPublicKey, time: number): Buffer {
  if (type === 4) return Buffer.from(`cosignature/v1\ntime ${time}\n${text}`);
  const [origin = '', size = '', root = ''] = text.split('\n');
  const opaque = (value: string) => [Buffer.from([Buffer.byteLength(value)]), Buffer.from(value)];
  return Buffer.concat([
    Buffer.from('subtree/v1\n\0'),
    ...opaque(name),
    u64(time),
    ...opaque(origin),
    u64(0),
    u64(Number(size)),
    Buffer.from(root, 'base64'),
  ]);
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

/** signed-note: whether the line states the key's name and id; then the bytes after the id, else null. */
export function c2spSignature(signatureLine: string, key: C2spPublicKey): Buffer | null {
  const [dash, name, base64 = ''] = signatureLine.trimEnd().split(' ');
  const bytes = Buffer.from(base64, 'base64');
  return dash === '—' && name === key.name && bytes.subarray(0, 4).equals(key.id) ? bytes.subarray(4) : null;
}

/** Whether the signature line is one of the key over the note's text; `time`: of a cosignature, else null. */
export function c2spVerify(
  text: string,
  signatureLine: string,
  key: C2spPublicKey,
): { time: number | null } | null {
  const bytes = c2spSignature(signatureLine, key);
  if (bytes === null) return null;
  if (key.type === 1) return ed25519Verify(key, Buffer.from(text), bytes) ? { time: null } : null;
  const time = Number(bytes.readBigUInt64BE(0));
  const [message, signature] = [c2spMessage(text, key, time), bytes.subarray(8)];
  const valid =
    key.type === 4
      ? ed25519Verify(key, message, signature)
      : ml_dsa44.verify(key.publicKey, message, signature);
  return valid ? { time } : null;
}

function ed25519Verify({ publicKey }: C2spPublicKey, message: Buffer, signature: Buffer): boolean {
  const key = createPublicKey({ key: Buffer.concat([SPKI_HEAD, publicKey]), format: 'der', type: 'spki' });
  return verify(null, message, key, signature);
}

/** RFC 6962 §2.1: MTH. `leaves`: the data of each. */
export function c2spRoot(leaves: readonly string[]): Buffer {
  if (leaves.length === 0) return sha256('');
  if (leaves.length === 1) return sha256(Buffer.from([0]), leaves[0] ?? '');
  const split = splitOf(leaves.length);
  return sha256(Buffer.from([1]), c2spRoot(leaves.slice(0, split)), c2spRoot(leaves.slice(split)));
}

/** The largest power of two smaller than n. */
function splitOf(n: number): number {
  let split = 1;
  while (split * 2 < n) split *= 2;
  return split;
}

/** RFC 6962 §2.1.2: PROOF(m, D[n]). */
export const c2spConsistency = (from: number, leaves: readonly string[]): readonly Buffer[] =>
  from === 0 || from === leaves.length ? [] : subproof(from, leaves, true);

function subproof(m: number, leaves: readonly string[], isWhole: boolean): readonly Buffer[] {
  const n = leaves.length;
  if (m === n) return isWhole ? [] : [c2spRoot(leaves)];
  const split = splitOf(n);
  if (m <= split) return [...subproof(m, leaves.slice(0, split), isWhole), c2spRoot(leaves.slice(split))];
  return [...subproof(m - split, leaves.slice(split), false), c2spRoot(leaves.slice(0, split))];
}

/** tlog-witness: the body of add-checkpoint. */
export const c2spSubmission = (old: number, proof: readonly Buffer[], checkpoint: string): string =>
  `old ${old}\n${proof.map((hash) => `${hash.toString('base64')}\n`).join('')}\n${checkpoint}`;

/**
 * RFC 6962 §2.1.2: whether the proof leads from the old root to the new one. Follows the definition of SUBPROOF: each step takes
 * the hash that the definition puts at its place.
 */
export function c2spIsConsistent(
  sizes: { readonly from: number; readonly to: number },
  roots: { readonly from: Buffer; readonly to: Buffer },
  proof: readonly Buffer[],
): boolean {
  const { from, to } = sizes;
  if (from === to) return proof.length === 0 && roots.from.equals(roots.to);
  if (from === 0) return proof.length === 0;
  const rest = [...proof];
  const take = () => rest.shift() ?? Buffer.alloc(0);
  const node = (left: Buffer, right: Buffer) => sha256(Buffer.from([1]), left, right);
  const both = (m: number, n: number, isWhole: boolean): readonly [Buffer, Buffer] => {
    if (m === n) {
      const root = isWhole ? roots.from : take();
      return [root, root];
    }
    const split = splitOf(n);
    if (m <= split) {
      const [old, left] = both(m, split, isWhole);
      return [old, node(left, take())];
    }
    const [old, right] = both(m - split, n - split, false);
    const left = take();
    return [node(left, old), node(left, right)];
  };
  const [old, grown] = both(from, to, true);
  return rest.length === 0 && old.equals(roots.from) && grown.equals(roots.to);
}
