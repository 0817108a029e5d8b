// A witness written from the text of C2SP tlog-witness, tlog-cosignature and signed-note and of RFC 9162, and from nothing of
// this project: Ed25519 only, everything in memory.
import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign as signBytes,
  verify as verifyBytes,
} from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

export type Reply = {
  readonly status: number;
  readonly body: string;
  readonly type?: string;
};

export type WitnessOptions = {
  readonly name?: string;
  /** Unix ms. */
  readonly now?: () => number;
};

const sha256 = (...parts: readonly Uint8Array[]) =>
  createHash('sha256').update(Buffer.concat(parts)).digest();
const node = (left: Uint8Array, right: Uint8Array) => sha256(Uint8Array.of(1), left, right);

/** Of the note format: name, newline, type, key. */
const keyIdOf = (name: string, type: number, key: Uint8Array) =>
  sha256(Buffer.from(`${name}\n`), Uint8Array.of(type), key).subarray(0, 4);

const ed25519 = (raw: Uint8Array): KeyObject =>
  createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(raw).toString('base64url') },
    format: 'jwk',
  });

type LogKey = { readonly id: Buffer; readonly key: KeyObject };
/** `note`: with the log's signatures and the cosignature. */
type Seen = { readonly size: number; readonly root: Buffer; readonly note: string };

export class StandardWitness {
  readonly name: string;
  /** `<name>+<key id>+<base64>`, of type 0x04. */
  readonly vkey: string;
  /** Bodies of all submissions, in order. */
  readonly asked: string[] = [];
  readonly #now: () => number;
  readonly #private: KeyObject;
  readonly #keyId: Buffer;
  readonly #logs = new Map<string, LogKey[]>();
  readonly #seen = new Map<string, Seen>();

  constructor({ name = 'witness.example/w1', now = Date.now }: WitnessOptions = {}) {
    this.name = name;
    this.#now = now;
    const pair = generateKeyPairSync('ed25519');
    this.#private = pair.privateKey;
    const raw = Buffer.from(String(pair.publicKey.export({ format: 'jwk' }).x), 'base64url');
    this.#keyId = keyIdOf(name, 4, raw);
    this.vkey = `${name}+${this.#keyId.toString('hex')}+${Buffer.concat([Uint8Array.of(4), raw]).toString('base64')}`;
  }

  /** Trusts a key of the log: 32 bytes, base64url. */
  know(origin: string, x: string): this {
    const raw = Buffer.from(x, 'base64url');
    const keys = this.#logs.get(origin) ?? [];
    this.#logs.set(origin, [...keys, { id: keyIdOf(origin, 1, raw), key: ed25519(raw) }]);
    return this;
  }

  /** Leaves that it has cosigned; 0: none. */
  sizeOf(origin: string): number {
    return this.#seen.get(origin)?.size ?? 0;
  }

  add(body: string): Reply {
    this.asked.push(body);
    const border = body.indexOf('\n\n');
    const [first = '', ...proofLines] = body.slice(0, border).split('\n');
    const checkpoint = body.slice(border + 2);
    const textEnd = checkpoint.lastIndexOf('\n\n') + 1;
    const note = checkpoint.slice(0, textEnd);
    const [origin = '', sizeText = '', rootText = ''] = note.split('\n');
    const oldText = /^old (0|[1-9]\d*)$/.exec(first)?.[1];
    if (border < 0 || textEnd < 1 || oldText === undefined || proofLines.length > 63)
      return { status: 400, body: 'malformed\n' };
    const keys = this.#logs.get(origin);
    if (keys === undefined) return { status: 404, body: 'unknown origin\n' };
    if (!isSignedBy(keys, origin, note, checkpoint.slice(textEnd + 1))) return { status: 403, body: '\n' };
    const [old, size, root] = [Number(oldText), Number(sizeText), Buffer.from(rootText, 'base64')];
    if (old > size) return { status: 400, body: 'old is larger\n' };
    const seen = this.#seen.get(origin) ?? { size: 0, root: sha256(), note: '' };
    if (old !== seen.size) return { status: 409, body: `${seen.size}\n`, type: 'text/x.tlog.size' };
    const proof = proofLines.map((line) => Buffer.from(line, 'base64'));
    const next = { size, root, note: '' };
    if (!extend(seen, next, proof)) return { status: 422, body: 'the proof does not hold\n' };
    const cosignature = this.cosign(note);
    this.#seen.set(origin, { ...next, note: checkpoint + cosignature });
    return { status: 200, body: cosignature };
  }

  /** Of its monitoring prefix: `path` begins with the hash of an origin. */
  published(path: string): Reply {
    for (const [origin, { note }] of this.#seen)
      if (path === `${sha256(Buffer.from(origin)).toString('hex')}/checkpoint`)
        return { status: 200, body: note };
    return { status: 404, body: 'none\n' };
  }

  /** A signature line over any text of a checkpoint, at `time` (Unix seconds). */
  cosign(note: string, time = Math.floor(this.#now() / 1000)): string {
    const message = Buffer.from(`cosignature/v1\ntime ${time}\n${note}`);
    const stamp = Buffer.alloc(8);
    stamp.writeBigUInt64BE(BigInt(time));
    const signature = Buffer.concat([this.#keyId, stamp, signBytes(null, message, this.#private)]);
    return `— ${this.name} ${signature.toString('base64')}\n`;
  }

  /** As a server answers whose submission prefix is its monitoring prefix. */
  readonly handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const reply =
      request.method === 'POST' && request.url?.endsWith('/add-checkpoint')
        ? this.add(await text(request))
        : this.published(request.url?.split('/').slice(-2).join('/') ?? '');
    response.writeHead(reply.status, { 'content-type': reply.type ?? 'text/plain' }).end(reply.body);
  };
}

function isSignedBy(keys: readonly LogKey[], origin: string, note: string, lines: string): boolean {
  let signed = false;
  for (const line of lines.trimEnd().split('\n')) {
    const [, name, base64 = ''] = /^— (\S+) (\S+)$/u.exec(line) ?? [];
    const bytes = Buffer.from(base64, 'base64');
    const key = keys.find(({ id }) => name === origin && id.equals(bytes.subarray(0, 4)));
    if (key === undefined) continue;
    if (!verifyBytes(null, Buffer.from(note), key.key, bytes.subarray(4))) return false;
    signed = true;
  }
  return signed;
}

/** RFC 9162 §2.1.4.2. */
function extend(from: Seen, to: Seen, proof: readonly Buffer[]): boolean {
  if (to.size === 0) return from.size === 0 && proof.length === 0 && to.root.equals(sha256());
  if (from.size === 0) return proof.length === 0;
  if (from.size === to.size) return proof.length === 0 && from.root.equals(to.root);
  const path = [...proof];
  if ((from.size & (from.size - 1)) === 0) path.unshift(from.root);
  let [fn, sn] = [from.size - 1, to.size - 1];
  while (fn & 1) [fn, sn] = [fn >> 1, sn >> 1];
  const first = path.shift();
  if (first === undefined) return false;
  let [fr, sr] = [first, first];
  for (const c of path) {
    if (sn === 0) return false;
    if (fn & 1 || fn === sn) {
      [fr, sr] = [node(c, fr), node(c, sr)];
      if (!(fn & 1)) while (fn !== 0 && !(fn & 1)) [fn, sn] = [fn >> 1, sn >> 1];
    } else sr = node(sr, c);
    [fn, sn] = [fn >> 1, sn >> 1];
  }
  return sn === 0 && fr.equals(from.root) && sr.equals(to.root);
}
