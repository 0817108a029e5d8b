// A log that submits its checkpoints to a witness, written only from the texts of C2SP with fetch and c2sp.ts.
import { createHash } from 'node:crypto';
import {
  type C2spKey,
  c2spCheckpointText,
  c2spConsistency,
  c2spCosignature,
  c2spKey,
  c2spNote,
  c2spRoot,
  c2spSubmission,
  c2spVerify,
} from './c2sp.ts';

export type C2spAdded = { readonly status: number; readonly type: string | null; readonly body: string };

export class C2spLog {
  readonly key: C2spKey;
  readonly leaves: string[] = [];
  constructor(origin: string, type: 1 | 4 | 6 = 1, key = c2spKey(origin, type)) {
    this.key = key;
  }

  /** Another history of the log, by the same key: the leaf at `index` is another one. */
  forked(index: number): C2spLog {
    const fork = new C2spLog(this.key.name, this.key.type, this.key);
    fork.leaves.push(...this.leaves.map((leaf, at) => (at === index ? `other ${leaf}` : leaf)));
    return fork;
  }

  grow(count: number): this {
    for (let n = 0; n < count; n++) this.leaves.push(`${this.key.name} ${this.leaves.length}`);
    return this;
  }

  /** The text of the checkpoint of the first `size` leaves. */
  text(size = this.leaves.length): string {
    return c2spCheckpointText(this.key.name, size, c2spRoot(this.leaves.slice(0, size)));
  }

  /** The signed checkpoint of the first `size` leaves. A log with a cosignature key states no time. */
  checkpoint(size = this.leaves.length): string {
    const text = this.text(size);
    return this.key.type === 1 ? c2spNote(text, this.key) : `${text}\n${c2spCosignature(text, this.key, 0)}`;
  }

  /** The body of add-checkpoint from the tree of `old` leaves. */
  submission(old: number, size = this.leaves.length): string {
    return c2spSubmission(old, c2spConsistency(old, this.leaves.slice(0, size)), this.checkpoint(size));
  }

  get hash(): string {
    return createHash('sha256').update(this.key.name).digest('hex');
  }
}

export async function c2spAdd(url: string, body: string | Uint8Array): Promise<C2spAdded> {
  const answer = await fetch(`${url}/add-checkpoint`, { method: 'POST', body });
  return { status: answer.status, type: answer.headers.get('content-type'), body: await answer.text() };
}

/** tlog-witness: the answer is one signature line or more, of which those of unknown keys are ignored. */
export function c2spCosigned(text: string, answer: string, witness: C2spKey): { time: number | null } | null {
  const lines = answer.match(/^— .*\n/gmu) ?? [];
  if (lines.join('') !== answer) return null;
  return lines.map((line) => c2spVerify(text, line, witness)).find((found) => found !== null) ?? null;
}

/** The key of a verifier key text, by signed-note. It can only verify. */
export function c2spKeyOf(vkey: string): C2spKey {
  const [, name = '', id = '', base64 = ''] = /^(.+)\+([0-9a-f]{8})\+(.+)$/.exec(vkey) ?? [];
  const bytes = Buffer.from(base64, 'base64');
  const type = ([1, 4, 6] as const).find((known) => known === bytes[0]);
  if (type === undefined) throw new Error(`not a verifier key: ${vkey}`);
  const sign = () => {
    throw new Error('a verifier key signs nothing');
  };
  return { name, type, publicKey: bytes.subarray(1), id: Buffer.from(id, 'hex'), vkey, sign };
}
