// Whether a checkpoint is one, by a key that may sign it, and fits what was signed and logged before it.
import { toBase64 } from '#src/domain/encoding.ts';
import type { CheckpointSigned } from '#src/domain/signing-keys/events.ts';
import { type KeyRecord, keyOpenAt } from '#src/domain/signing-keys/keys.ts';
import type { Primitives } from '../receipt/verify.ts';
import { parseCheckpoint, type TreeHead, verifyOwnCheckpoint } from '../transparency/checkpoint.ts';
import { type Hash, sameHash } from '../transparency/merkle.ts';
import type { Fault } from './finding.ts';

/** The clocks of the processes that sign checkpoints in turn may differ by this much. */
const CLOCK_TOLERANCE_MS = 600_000;

/** The checkpoint's tree head, whoever signed it; null if it cannot be read. */
export type CheckpointVerdict = { readonly head: TreeHead | null; readonly faults: readonly Fault[] };

/** A process learns of a compromise some seconds after it was announced, and signs until then. */
const COMPROMISED =
  'its key was compromised, so the checkpoint does not count, whoever signed it; every later audit reports it again';

/** `keys`: as announced before it. */
export async function judgeCheckpoint(
  signed: CheckpointSigned,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<CheckpointVerdict> {
  const head = parseCheckpoint(signed.note);
  if (head === null) {
    return { head, faults: [{ kind: 'checkpoint_unreadable', message: 'its note is no checkpoint' }] };
  }
  const faults: Fault[] = [];
  const { origin, size, root, keyId, signedAt } = signed;
  if (origin !== head.origin || size !== String(head.size) || root !== toBase64(head.root)) {
    const message = 'origin, size or root of the event are not those of its note';
    faults.push({ kind: 'checkpoint_event_mismatch', message });
  }
  // A compromised key has its own finding, as for a receipt.
  const checkpoint = await verifyOwnCheckpoint(signed.note, keys, primitives);
  const key = keys.find((known) => known.keyId === checkpoint?.keyId) ?? null;
  const invalid = (message: string) => faults.push({ kind: 'checkpoint_signature_invalid', message });
  if (key === null) invalid('no checkpoint key that was announced before has signed it');
  else if (key.keyId !== keyId) invalid('another key has signed it than the event says');
  else if (key.compromisedAt !== null)
    faults.push({ kind: 'checkpoint_key_compromised', message: COMPROMISED });
  else if (!keyOpenAt(key, Math.floor(Date.parse(signedAt) / 1000))) invalid('its key was not valid then');
  return { head, faults };
}

/** Of one that fits: what no relay would sign after the one before it. `signedAt`: Unix ms. */
export function orderFaults(
  { size }: TreeHead,
  signedAt: number,
  last: { readonly size: number; readonly signedAt: number } | null,
): readonly Fault[] {
  const faults: Fault[] = [];
  if (last !== null && size === last.size) {
    faults.push({ kind: 'checkpoint_repeated', message: `the same ${size} leaves were signed before` });
  }
  if (last !== null && signedAt < last.signedAt - CLOCK_TOLERANCE_MS) {
    faults.push({ kind: 'checkpoint_time_wrong', message: 'it is signed before the checkpoint before it' });
  }
  return faults;
}

/** What was there before a checkpoint. */
export type Logged = {
  /** The checkpoint before it; null before the first. */
  readonly last: Pick<TreeHead, 'origin' | 'size'> | null;
  readonly leaves: number;
  /** Of the tree with as many leaves as the checkpoint says; null where there are not as many. */
  readonly root: Hash | null;
};

/** Whether it fits: origin, size and root, in that order, the first that does not. */
export function fitFault(head: TreeHead, { last, leaves, root }: Logged): Fault | null {
  if (last !== null && last.origin !== head.origin) {
    return { kind: 'checkpoint_origin_changed', message: `the log was called ${last.origin} before` };
  }
  if (last !== null && head.size < last.size) {
    const message = `${head.size} leaves, after a checkpoint of ${last.size}`;
    return { kind: 'checkpoint_shrinks', message };
  }
  if (root === null) {
    const message = `${head.size} leaves are signed, and the record has ${leaves} up to here`;
    return { kind: 'checkpoint_ahead', message };
  }
  if (sameHash(root, head.root)) return null;
  const message = `the ${head.size} leaves before it are not those that were signed`;
  return { kind: 'checkpoint_root_mismatch', message };
}
