// Checkpoints (C2SP tlog-checkpoint): a signed note over the tree's head, by the relay's checkpoint key.
import { fromBase64, fromBase64url, toBase64 } from '#src/domain/encoding.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import type { Primitives } from '../receipt/report.ts';
import { type Hash, isCount } from './merkle.ts';
import { parseNote, verifyNote } from './note.ts';
import { HASH_BYTES } from './tiles.ts';

export type TreeHead = { readonly origin: string; readonly size: number; readonly root: Hash };

/** Key name and origin of the log: `<host>/receipts`. `host`: with its port where the URL has one. */
export const originOf = (host: string): string => `${host}/receipts`;

export const checkpointText = ({ origin, size, root }: TreeHead): string =>
  `${origin}\n${size}\n${toBase64(root)}\n`;

/** The tree head of the note, without verifying signatures; null if its text is no checkpoint. Ignores extension lines. */
export function parseCheckpoint(note: string): TreeHead | null {
  const parsed = parseNote(note);
  if (parsed === null) return null;
  const [origin = '', size = '', base64 = '', ...more] = parsed.text.split('\n');
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
export const verifyCheckpoint = (
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
  const [parsed, head] = [parseNote(note), parseCheckpoint(note)];
  if (parsed === null || head === null) return null;
  const trusted = keys.flatMap(({ keyId, purpose, x }) => {
    const publicKey = fromBase64url(x);
    const fits = purpose === 'checkpoint' && publicKey?.length === 32;
    return fits ? [{ name: head.origin, publicKey, keyId }] : [];
  });
  const signer = await verifyNote(parsed, trusted, primitives);
  return signer && { ...head, keyId: signer.keyId };
}
