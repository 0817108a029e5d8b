// Checks checkpoints, recorded and kept by the auditor: form, signature, and whether they fit the leaves of the record.
import { toBase64 } from '#src/domain/encoding.ts';
import type { CheckpointSigned } from '#src/domain/events/signing-keys.ts';
import { type KeyRecord, keyOpenAt, type Primitives } from '#src/domain/signing-keys/keys.ts';
import { parseCheckpoint, type TreeHead, verifyCheckpoint } from '../transparency/checkpoint.ts';
import { type Hash, sameHash } from '../transparency/merkle.ts';
import { type Fault, fault } from './finding.ts';

/** `head`: the checkpoint's tree head, also if no key of the relay signed it; null if it cannot be read. */
export type CheckpointVerdict = { readonly head: TreeHead | null; readonly faults: readonly Fault[] };

/** `keys`: as announced before it. */
export async function judgeCheckpoint(
  { origin, size, root, keyId, note, signedAt }: CheckpointSigned,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<CheckpointVerdict> {
  const head = parseCheckpoint(note);
  if (head === null) return { head, faults: [fault('checkpoint_unreadable', 'its note is no checkpoint')] };
  const faults: Fault[] = [];
  if (origin !== head.origin || size !== String(head.size) || root !== toBase64(head.root)) {
    const message = 'origin, size or root of the event are not those of its note';
    faults.push(fault('checkpoint_event_mismatch', message));
  }
  const signer = await verifyCheckpoint(note, keys, primitives);
  const key = signer && keys.find((known) => known.keyId === signer.keyId);
  if (!key || key.keyId !== keyId || !keyOpenAt(key, Math.floor(Date.parse(signedAt) / 1000))) {
    const message =
      'it is not signed by the checkpoint key that the event names, or that key was not announced, not valid then, or compromised';
    faults.push(fault('checkpoint_signature_invalid', message));
  }
  return { head, faults };
}

/** The record before a checkpoint. */
export type Logged = {
  /** The largest checkpoint before; null before the first. */
  readonly last: Pick<TreeHead, 'origin' | 'size'> | null;
  readonly leaves: number;
  /** Root of the tree with as many leaves as the checkpoint states; null if it is not known. */
  readonly root: Hash | null;
};

/** The first of origin, size and root that does not fit, or that nothing is new; null if all fit. */
export function fitFault(head: TreeHead, { last, leaves, root }: Logged): Fault | null {
  if (last !== null && last.origin !== head.origin) {
    return fault('checkpoint_origin_changed', `the log was called ${last.origin} before`);
  }
  if (last !== null && head.size < last.size)
    return fault('checkpoint_shrinks', `${head.size} leaves, after a checkpoint of ${last.size}`);
  if (head.size > leaves) {
    const message = `${head.size} leaves are signed, and the record has ${leaves} up to here`;
    return fault('checkpoint_ahead', message);
  }
  if (root === null || !sameHash(root, head.root)) {
    const message = `the ${head.size} leaves before it are not those that were signed`;
    return fault('checkpoint_root_mismatch', message);
  }
  return head.size === last?.size
    ? fault('checkpoint_repeated', `a checkpoint before it covers the same ${head.size} leaves`)
    : null;
}

/** `source`: where the auditor kept it, for the reader of the findings. `note`: as signed. */
export type KeptCheckpoint = TreeHead & { readonly source: string; readonly note: string };

/** The whole record. `root`: of as many leaves as the kept checkpoint states; null if there are fewer. */
export type KeptFacts = Pick<Logged, 'leaves' | 'root'> & { readonly origin: string | null };

/** The first of origin, size and root in which the record contradicts a checkpoint that an auditor kept from before. */
export function keptFault({ source, origin, size, root }: KeptCheckpoint, facts: KeptFacts): Fault | null {
  if (origin !== facts.origin) {
    const message = `the checkpoint of ${source} is of ${origin}, the record of ${facts.origin ?? 'no transparency log'}`;
    return fault('kept_checkpoint_origin_mismatch', message);
  }
  if (facts.root === null) {
    const message = `the checkpoint of ${source} was signed over ${size} receipts and key events; the record has ${facts.leaves} of them: some were removed, or the record is older than the checkpoint`;
    return fault('kept_checkpoint_ahead', message);
  }
  if (sameHash(facts.root, root)) return null;
  const message = `the first ${size} receipts and key events have the root ${toBase64(facts.root)}, and ${toBase64(root)} was signed (${source}): one of them was changed, added or removed since`;
  return fault('kept_checkpoint_root_mismatch', message);
}
