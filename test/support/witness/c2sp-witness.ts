// A witness written only from the text of C2SP tlog-witness, with node:http and c2sp.ts, everything in memory: for the log on
// the other side, and for a comparison with our own witness.
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import {
  type C2spKey,
  type C2spPublicKey,
  c2spCosignature,
  c2spIsConsistent,
  c2spKey,
  c2spPublicKey,
  c2spRoot,
  c2spSignature,
  c2spVerify,
} from './c2sp.ts';

export type C2spAnswer = { readonly status: number; readonly type?: string; readonly body: string };

export type C2spWitnessOptions = {
  readonly name?: string;
  /** Of its key, a fresh one: 4 is Ed25519, 6 is ML-DSA-44. */
  readonly type?: 4 | 6;
  /** Unix ms. */
  readonly now?: () => number;
};

/** `note`: with the verified signatures of the log and the cosignature. */
type Seen = { readonly size: number; readonly root: Buffer; readonly note: string };

export class C2spWitness {
  /** Its name is that of the witness. */
  readonly key: C2spKey;
  /** Bodies of all submissions, in order. */
  readonly asked: string[] = [];
  readonly #now: () => number;
  readonly #logs = new Map<string, C2spPublicKey[]>();
  readonly #seen = new Map<string, Seen>();

  constructor({ name = 'witness.example/w1', type = 4, now = Date.now }: C2spWitnessOptions = {}) {
    this.key = c2spKey(name, type);
    this.#now = now;
  }

  get vkey(): string {
    return this.key.vkey;
  }

  /** Trusts an Ed25519 key of the log: 32 bytes, base64url. */
  know(origin: string, x: string): this {
    return this.trust(c2spPublicKey(origin, 1, Buffer.from(x, 'base64url')));
  }

  /** Trusts a key of the log of its name. */
  trust(key: C2spPublicKey): this {
    this.#logs.set(key.name, [...(this.#logs.get(key.name) ?? []), key]);
    return this;
  }

  /** Leaves that it has cosigned; 0: none. */
  sizeOf(origin: string): number {
    return this.#seen.get(origin)?.size ?? 0;
  }

  /** Loses what it remembers, as with a state that was begun again. */
  forget(): void {
    this.#seen.clear();
  }

  /** Answers a body of add-checkpoint. */
  add(body: string): C2spAnswer {
    this.asked.push(body);
    const border = body.indexOf('\n\n');
    const [oldLine = '', ...hashes] = body.slice(0, border).split('\n');
    const [, old] = /^old (0|[1-9][0-9]*)$/.exec(oldLine) ?? [];
    const checkpoint = body.slice(border + 2);
    const note = checkpoint.slice(0, checkpoint.lastIndexOf('\n\n') + 1);
    const lines = checkpoint
      .slice(note.length + 1)
      .split('\n')
      .slice(0, -1);
    const [origin = '', size = '', root64 = ''] = note.split('\n');
    if (border < 0 || note === '' || old === undefined || hashes.length > 63 || lines.length === 0)
      return { status: 400, body: 'malformed\n' };
    const keys = this.#logs.get(origin);
    if (keys === undefined) return { status: 404, body: 'unknown\n' };
    const verified = verifiedLines(note, lines, keys);
    if (verified.length === 0) return { status: 403, body: 'not signed\n' };
    if (Number(old) > Number(size)) return { status: 400, body: 'old size\n' };
    const last = this.#seen.get(origin) ?? { size: 0, root: c2spRoot([]) };
    if (Number(old) !== last.size) return { status: 409, type: 'text/x.tlog.size', body: `${last.size}\n` };
    const root = Buffer.from(root64, 'base64');
    const proof = hashes.map((hash) => Buffer.from(hash, 'base64'));
    const [from, to] = [last.size, Number(size)];
    if (to === 0 && !root.equals(c2spRoot([]))) return { status: 422, body: 'empty root\n' };
    if (!c2spIsConsistent({ from, to }, { from: last.root, to: root }, proof))
      return { status: 422, body: 'inconsistent\n' };
    const cosignature = this.cosign(note);
    this.#seen.set(origin, { size: to, root, note: `${note}\n${verified.join('\n')}\n${cosignature}` });
    return { status: 200, body: cosignature };
  }

  /** Of its monitoring prefix: `path` begins with the hash of an origin. */
  published(path: string): C2spAnswer {
    for (const [origin, { note }] of this.#seen)
      if (path === `${createHash('sha256').update(origin).digest('hex')}/checkpoint`)
        return { status: 200, body: note };
    return { status: 404, body: 'none\n' };
  }

  /** A signature line over any text of a checkpoint, at `time` (Unix seconds). */
  cosign(note: string, time = Math.floor(this.#now() / 1000)): string {
    return c2spCosignature(note, this.key, time);
  }

  /** As a server answers whose submission prefix is its monitoring prefix. */
  readonly handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const {
      status,
      type = 'text/plain',
      body,
    } = request.method === 'POST' && request.url?.endsWith('/add-checkpoint')
      ? this.add(await text(request))
      : this.published(request.url?.split('/').slice(-2).join('/') ?? '');
    response.writeHead(status, { 'content-type': type }).end(body);
  };
}

/** Empty also if a line states a known key and does not verify with it. */
function verifiedLines(
  note: string,
  lines: readonly string[],
  keys: readonly C2spPublicKey[],
): readonly string[] {
  const known = lines.flatMap((line) =>
    keys.flatMap((key) => (c2spSignature(line, key) === null ? [] : [{ line, key }])),
  );
  return known.every(({ line, key }) => c2spVerify(note, line, key) !== null)
    ? known.map(({ line }) => line)
    : [];
}
