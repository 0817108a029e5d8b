// Checks checkpoints, recorded and kept by the auditor: form, signature, and whether they fit the leaves of the record.
import { toBase64, toHex } from '#src/domain/encoding.ts';
import type { CheckpointCosigned, CheckpointSigned } from '#src/domain/events/signing-keys.ts';
import { type KeyRecord, keyOpenAt, type Primitives } from '#src/domain/signing-keys/keys.ts';
import { parseCheckpoint, type TreeHead, verifySignedCheckpoint } from '../transparency/checkpoint.ts';
import { statedTime } from '../transparency/cosignature.ts';
import { type Hash, sameHash } from '../transparency/merkle.ts';
import { parseNote } from '../transparency/note.ts';
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
  if (head === null) return { head, faults: [UNREADABLE] };
  const faults = noteFaults({ origin, size, root }, head);
  const signer = await verifySignedCheckpoint(note, keys, primitives);
  const key = signer && keys.find((known) => known.keyId === signer.keyId);
  if (!key || key.keyId !== keyId || !keyOpenAt(key, Math.floor(Date.parse(signedAt) / 1000))) {
    const message = `The checkpoint of ${head.size} leaves is not signed by the checkpoint key that the event names (${keyId}), or that key was not announced, not valid then, or compromised.`;
    faults.push(fault('checkpoint_signature_invalid', message));
  }
  return { head, faults };
}

const UNREADABLE: Fault = fault('checkpoint_unreadable', 'The note of the event is not a checkpoint.');

function noteFaults(
  { origin, size, root }: Pick<CheckpointSigned, 'origin' | 'size' | 'root'>,
  head: TreeHead,
): Fault[] {
  if (origin === head.origin && size === String(head.size) && root === toBase64(head.root)) return [];
  const message = 'The event states another origin, size or root than the note of its checkpoint.';
  return [fault('checkpoint_event_mismatch', message)];
}

/** As `judgeCheckpoint`. Compares the cosignatures with their lines, and verifies none: that needs a policy. */
export async function judgeCosigned(
  event: CheckpointCosigned,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<CheckpointVerdict> {
  const head = parseCheckpoint(event.note);
  if (head === null) return { head, faults: [UNREADABLE] };
  const faults = noteFaults(event, head);
  if ((await verifySignedCheckpoint(event.note, keys, primitives)) === null) {
    const message = `The cosigned checkpoint of ${head.size} leaves is not signed by a checkpoint key that was announced before it and is not compromised.`;
    faults.push(fault('checkpoint_signature_invalid', message));
  }
  const wrong = event.cosignatures.find((cosignature) => !isAsItsLine(cosignature));
  if (wrong !== undefined) {
    const message = `The event states another name, key id or time for the cosignature of ${wrong.name} than its line.`;
    faults.push(fault('cosigned_checkpoint_mismatch', message));
  }
  return { head, faults };
}

function isAsItsLine({ name, keyId, time, line }: CheckpointCosigned['cosignatures'][number]): boolean {
  const [found, ...more] = parseNote(`\n\n${line}\n`)?.signatures ?? [];
  if (found === undefined || more.length > 0) return false;
  return found.name === name && toHex(found.keyId) === keyId && statedTime(found.signature) === time;
}

/** The first that does not fit of a cosigned checkpoint; null if all fits. `last`: size of the last cosigned one. */
export function cosignedFault(
  head: TreeHead,
  {
    origin,
    largest,
    last,
    root,
  }: { origin: string | null; largest: number; last: number; root: Hash | null },
): Fault | null {
  const kind = 'cosigned_checkpoint_mismatch';
  const subject = `The cosigned checkpoint of ${head.size} leaves`;
  if (head.size < last) return fault(kind, `${subject} follows a cosigned checkpoint of ${last} leaves.`);
  const isRecorded =
    head.origin === origin && head.size <= largest && root !== null && sameHash(root, head.root);
  if (isRecorded) return null;
  return fault(kind, `${subject} is not among the checkpoints that are recorded before it.`);
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
  const subject = `The checkpoint of ${head.size} leaves`;
  if (last !== null && last.origin !== head.origin) {
    const message = `${subject} names the transparency log ${head.origin}, which was named ${last.origin} before.`;
    return fault('checkpoint_origin_changed', message);
  }
  if (last !== null && head.size < last.size)
    return fault('checkpoint_shrinks', `${subject} follows a checkpoint of ${last.size} leaves.`);
  if (head.size > leaves)
    return fault(
      'checkpoint_ahead',
      `${subject} covers more than the ${leaves} that the record has before it.`,
    );
  if (root === null || !sameHash(root, head.root)) {
    const message = `${subject} was signed over other leaves than the first ${head.size} of the record.`;
    return fault('checkpoint_root_mismatch', message);
  }
  return head.size === last?.size
    ? fault('checkpoint_repeated', `${subject} covers the same leaves as a checkpoint before it.`)
    : null;
}

/** `source`: where the auditor kept it, for the reader of the findings. `note`: as signed. */
export type KeptCheckpoint = TreeHead & { readonly source: string; readonly note: string };

/** The whole record. `root`: of as many leaves as the kept checkpoint states; null if there are fewer. */
export type KeptFacts = Pick<Logged, 'leaves' | 'root'> & { readonly origin: string | null };

/** The first of origin, size and root in which the record contradicts a checkpoint that an auditor kept from before. */
export function keptFault({ source, origin, size, root }: KeptCheckpoint, facts: KeptFacts): Fault | null {
  if (origin !== facts.origin) {
    const message = `The checkpoint of ${source} is of the transparency log ${origin}, but the record ${facts.origin === null ? 'has no checkpoint' : `is of ${facts.origin}`}.`;
    return fault('kept_checkpoint_origin_mismatch', message);
  }
  if (facts.root === null) {
    const message = `The checkpoint of ${source} was signed over ${size} receipts and key events, but the record has ${facts.leaves}: some were removed, or the record is older than the checkpoint.`;
    return fault('kept_checkpoint_ahead', message);
  }
  if (sameHash(facts.root, root)) return null;
  const message = `The checkpoint of ${source} was signed over the root ${toBase64(root)}, but the first ${size} receipts and key events of the record have the root ${toBase64(facts.root)}: one of them was changed, added or removed since.`;
  return fault('kept_checkpoint_root_mismatch', message);
}
