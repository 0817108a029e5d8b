// Checkpoints (C2SP tlog-checkpoint): a signed note over the tree's head, by the relay's checkpoint key; and whether a tree
// head may be signed: only if the last checkpoint's tree is proven to be a prefix of it.
import { fromBase64, fromBase64url, toBase64 } from '#src/domain/encoding.ts';
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import { type Hash, isCount, sameHash } from './merkle.ts';
import { ED25519, type Note, noteKeyId, parseNote, verifyNote } from './note.ts';
import { HASH_BYTES } from './tiles.ts';

export const TRANSPARENCY = {
  /** A receipt is in the log within this time (maximum merge delay). */
  mmdSeconds: 3600,
  /** A quorum of the log's witnesses has cosigned a checkpoint that contains a receipt within this time after its issue. */
  witnessMmdSeconds: 600,
  /** A checkpoint is signed at least this often while receipts are added. */
  checkpointMs: 5000,
} as const;

export type TreeHead = { readonly origin: string; readonly size: number; readonly root: Hash };

/**
 * Key name and origin of the log: `<host>/receipts`. `host`: with its port where the URL has one. `successor`: distinguishes a
 * log that does not continue the first one of this host.
 */
export const originOf = (host: string, successor: string | null = null): string =>
  successor === null ? `${host}/receipts` : `${host}/receipts/${successor}`;

export const checkpointText = ({ origin, size, root }: TreeHead): string =>
  `${origin}\n${size}\n${toBase64(root)}\n`;

/** The tree head of the note, without verifying signatures; null if its text is no checkpoint. Ignores extension lines. */
export function parseCheckpoint(note: string): TreeHead | null {
  const parsed = parseNote(note);
  return parsed && treeHeadOf(parsed);
}

/** The tree head of a parsed note, without verifying signatures; null if its text is no checkpoint. */
export function treeHeadOf({ text }: Pick<Note, 'text'>): TreeHead | null {
  const [origin = '', size = '', base64 = '', ...more] = text.split('\n');
  const root = fromBase64(base64);
  if (origin === '' || !/^(0|[1-9]\d*)$/.test(size) || root?.length !== HASH_BYTES) return null;
  // The text ends with a newline; no line before is empty.
  if (more.pop() !== '' || more.includes('') || !isCount(Number(size))) return null;
  return { origin, size: Number(size), root };
}

export type Checkpoint = TreeHead & { readonly keyId: string };

/**
 * The checkpoint, if one of the checkpoint keys has signed it under the name of its origin; else null. A note has no time:
 * checkpoints of a retired key stay valid, those of a compromised key never are.
 */
export const verifySignedCheckpoint = (
  note: string,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<Checkpoint | null> =>
  verifyOwnCheckpoint(
    note,
    keys.filter(({ compromisedAt }) => compromisedAt === null),
    primitives,
  );

/** As `verifyCheckpoint`, but accepts compromised keys too: it shows who signed, not whether to trust the checkpoint. */
export async function verifyOwnCheckpoint(
  note: string,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<Checkpoint | null> {
  const parsed = parseNote(note);
  const head = parsed && treeHeadOf(parsed);
  if (parsed === null || head === null) return null;
  const trusted = keys.flatMap(({ keyId, purpose, x }) => {
    const publicKey = purpose === 'checkpoint' ? fromBase64url(x) : null;
    return publicKey?.length === 32 ? [{ name: head.origin, publicKey, keyId }] : [];
  });
  const signer = await verifyNote(parsed, trusted, primitives);
  return signer && { ...head, keyId: signer.keyId };
}

/**
 * Whether compromised keys only have signed it, as the key ids of its lines state: no reader accepts it. Verifies nothing;
 * false if no known key is named.
 */
export function isByCompromisedKeys(note: string, keys: readonly KeyRecord[]): boolean {
  if (keys.every(({ compromisedAt }) => compromisedAt === null)) return false;
  const parsed = parseNote(note);
  const name = (parsed && treeHeadOf(parsed))?.origin;
  if (parsed === null || name === undefined) return false;
  const signers = keys.filter(({ purpose, x }) => {
    const publicKey = purpose === 'checkpoint' ? fromBase64url(x) : null;
    if (publicKey === null) return false;
    const keyId = noteKeyId({ name, publicKey, type: ED25519 });
    return parsed.signatures.some((one) => one.name === name && sameHash(one.keyId, keyId));
  });
  return signers.length > 0 && signers.every(({ compromisedAt }) => compromisedAt !== null);
}

/** A checkpoint in the event log. */
export type StoredCheckpoint = {
  readonly size: number;
  readonly root: Hash;
  /** Of its event; compares as text in the log's global order. */
  readonly position: string;
};

export type CheckpointFacts = {
  /** The last one in the event log; null: it cannot be read. */
  readonly last: StoredCheckpoint | null;
  /** Its note is signed by a key of this relay, under the log's origin. */
  readonly signed: boolean;
  /** The newest one that this process has published or seen; null: none. */
  readonly known: Pick<StoredCheckpoint, 'size' | 'root'> | null;
  /** The current tree. */
  readonly rows: {
    readonly size: number;
    /** The projection position of the rows; null: no event. */
    readonly position: string | null;
    /** Proven: the last checkpoint's tree is a prefix of it or equal to it (RFC 6962 §2.1.2). */
    readonly extendsLast: boolean;
  };
};

/** Why nothing is signed. The operator has to investigate each. */
export type CheckpointProblem =
  | 'checkpoint_unreadable'
  | 'checkpoint_forgotten'
  | 'checkpoint_not_signed'
  | 'history_cut'
  | 'history_rewritten';

/** `rest`: all leaves are covered. `wait`: the rows lag behind the last checkpoint. */
export type NextCheckpoint =
  | { readonly kind: 'sign' | 'rest' | 'wait' }
  | { readonly kind: 'refuse'; readonly why: CheckpointProblem };

export function nextCheckpoint({ last, signed, known, rows }: CheckpointFacts): NextCheckpoint {
  if (last === null) return refuse('checkpoint_unreadable');
  if (known !== null && contradicts(last, known)) return refuse('checkpoint_forgotten');
  if (!signed) return refuse('checkpoint_not_signed');
  if (rows.size < last.size) {
    // All leaves precede the checkpoint in the event log: rows that contain the checkpoint contain all its leaves.
    const projected = rows.position !== null && rows.position >= last.position;
    return projected ? refuse('history_cut') : { kind: 'wait' };
  }
  if (!rows.extendsLast) return refuse('history_rewritten');
  return { kind: rows.size === last.size ? 'rest' : 'sign' };
}

/** A published checkpoint must not be lost or replaced: a later one extends it. `last`: of the event log. */
export function contradicts(
  last: Pick<StoredCheckpoint, 'size' | 'root'>,
  known: Pick<StoredCheckpoint, 'size' | 'root'>,
): boolean {
  return last.size < known.size || (last.size === known.size && !sameHash(last.root, known.root));
}

const refuse = (why: CheckpointProblem): NextCheckpoint => ({ kind: 'refuse', why });
