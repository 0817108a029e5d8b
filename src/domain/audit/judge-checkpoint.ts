// Checks a recorded checkpoint: its form, its signature, and whether it fits the checkpoints and leaves before it.
import { toBase64 } from '#src/domain/encoding.ts';
import type { CheckpointSigned } from '#src/domain/signing-keys/events.ts';
import { type KeyRecord, keyOpenAt } from '#src/domain/signing-keys/keys.ts';
import type { Primitives } from '../receipt/report.ts';
import { parseCheckpoint, type TreeHead, verifyOwnCheckpoint } from '../transparency/checkpoint.ts';
import { type Hash, sameHash } from '../transparency/merkle.ts';
import type { Fault } from './finding.ts';

/** The clocks of processes that sign checkpoints in turn may differ by this much. */
const CLOCK_TOLERANCE_MS = 600_000;

/** `head`: the checkpoint's tree head, also if no key of the relay signed it; null if it cannot be read. */
export type CheckpointVerdict = { readonly head: TreeHead | null; readonly faults: readonly Fault[] };

/** A process reads the announcement of a compromise some seconds later, and signs until then. */
const COMPROMISED =
  'its key was compromised, so the checkpoint is not trusted, even if the relay signed it; every later audit reports it again';

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
  else if (key.keyId !== keyId) invalid('the key that signed it is not the one that the event names');
  else if (key.compromisedAt !== null)
    faults.push({ kind: 'checkpoint_key_compromised', message: COMPROMISED });
  else if (!keyOpenAt(key, Math.floor(Date.parse(signedAt) / 1000)))
    invalid('its key was not valid at that time');
  return { head, faults };
}

/** Faults of a checkpoint that fits, in comparison with the preceding one. `signedAt`: Unix ms. */
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
    faults.push({ kind: 'checkpoint_time_wrong', message: 'it was signed before the preceding checkpoint' });
  }
  return faults;
}

/** The record before a checkpoint. */
export type Logged = {
  /** The preceding checkpoint; null before the first. */
  readonly last: Pick<TreeHead, 'origin' | 'size'> | null;
  readonly leaves: number;
  /** Root of the tree with as many leaves as the checkpoint states; null if there are fewer. */
  readonly root: Hash | null;
};

/** The first of origin, size and root that does not fit; null if all fit. */
export function fitFault(head: TreeHead, { last, leaves, root }: Logged): Fault | null {
  if (last !== null && last.origin !== head.origin) {
    return { kind: 'checkpoint_origin_changed', message: `the log was called ${last.origin} before` };
  }
  if (last !== null && head.size < last.size) {
    const message = `${head.size} leaves, after a checkpoint of ${last.size}`;
    return { kind: 'checkpoint_shrinks', message };
  }
  if (root === null) {
    const message = `${String(head.size) === '1' ? '1 leaf is' : `${head.size} leaves are`} signed, and the record has ${leaves} up to here`;
    return { kind: 'checkpoint_ahead', message };
  }
  if (sameHash(root, head.root)) return null;
  const message = `the ${head.size} leaves before it are not those that were signed`;
  return { kind: 'checkpoint_root_mismatch', message };
}
