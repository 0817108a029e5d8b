// Compares the record with an auditor's own evidence: keys and checkpoints kept from before. A relay that rewrites its
// whole history with other keys writes a consistent record, which contradicts this evidence.
import { toBase64 } from '#src/domain/encoding.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import type { TreeHead } from '../transparency/checkpoint.ts';
import { type Hash, sameHash } from '../transparency/merkle.ts';
import type { Finding } from './finding.ts';

export type EvidenceFindingKind =
  /** The record has a key that is missing from the trusted key set. */
  | 'key_untrusted'
  /** The trusted key set has a key that is missing from the record. */
  | 'key_missing'
  /** The record lets a key sign earlier or longer than the trusted key set does. */
  | 'key_window_wider'
  | 'kept_checkpoint_signature_invalid'
  /** A checkpoint key of the record has signed it and was compromised: it is compared with the record nevertheless. */
  | 'kept_checkpoint_key_compromised'
  /** It is of another transparency log. */
  | 'kept_checkpoint_origin_mismatch'
  /** The record has fewer leaves than were signed: some were removed, or it is older than the checkpoint. */
  | 'kept_checkpoint_ahead'
  | 'kept_checkpoint_root_mismatch'
  /** It fits the record, which has a larger one but not this: checkpoints are stored before publication, in order of size. */
  | 'kept_checkpoint_unrecorded';

export type EvidenceFinding = Omit<Finding, 'kind'> & { readonly kind: EvidenceFindingKind };

type EventLocation = Pick<Finding, 'stream' | 'revision' | 'position'>;
const NOWHERE: EventLocation = { stream: null, revision: null, position: null };

const found = (
  kind: EvidenceFindingKind,
  message: string,
  location: EventLocation = NOWHERE,
): EvidenceFinding => ({
  kind,
  ...location,
  jobId: null,
  message,
});

/** A key as the record announced it, and the event that did. */
export type AnnouncedKey = { readonly key: KeyRecord; readonly location: EventLocation };

/** `trusted` may be older than the record: a retirement that only the record has is no finding. */
export function compareKeys(
  announced: readonly AnnouncedKey[],
  trusted: readonly KeyRecord[],
): readonly EvidenceFinding[] {
  const missing = trusted.filter((key) => !announced.some((other) => sameKey(other.key, key)));
  return [
    ...announced.flatMap(({ key, location }) => {
      const known = trusted.find((other) => sameKey(other, key));
      if (known === undefined)
        return [
          found('key_untrusted', `The trusted key set does not contain the key ${key.keyId}.`, location),
        ];
      const wider = `The record lets the key ${key.keyId} sign when the trusted key set does not, or the record is older than the key set.`;
      return isWider(key, known) ? [found('key_window_wider', wider, location)] : [];
    }),
    ...missing.map(({ keyId }) =>
      found(
        'key_missing',
        `The trusted key set contains the key ${keyId}, and the record does not, or the record is older than the key set.`,
      ),
    ),
  ];
}

const sameKey = (a: KeyRecord, b: KeyRecord): boolean =>
  a.keyId === b.keyId && a.x === b.x && a.purpose === b.purpose;

const isWider = (key: KeyRecord, trusted: KeyRecord): boolean =>
  key.notBefore < trusted.notBefore ||
  isLater(key.notAfter, trusted.notAfter) ||
  isLater(key.compromisedAt, trusted.compromisedAt);

/** null: never. */
const isLater = (a: number | null, b: number | null): boolean => b !== null && (a === null || a > b);

export type KeptCheckpoint = TreeHead & {
  /** Where it was kept, for the reader of the findings. */
  readonly source: string;
  /** The signed note. */
  readonly note: string;
};

/** The record's facts for a kept checkpoint. `root`: of the first `kept.size` leaves; null if there are fewer. */
export type KeptFacts = {
  readonly origin: string | null;
  readonly leaves: number;
  readonly root: Hash | null;
  /** It contains a checkpoint of that size and root. */
  readonly recorded: boolean;
  /** Size of the largest checkpoint in it; null if it has none. */
  readonly largest: number | null;
  /** By a trusted key, by a compromised one, or by neither. */
  readonly signature: 'good' | 'compromised' | 'none';
};

export function compareCheckpoint(kept: KeptCheckpoint, facts: KeptFacts): readonly EvidenceFinding[] {
  return [...signatureFindings(kept, facts), ...treeFindings(kept, facts)];
}

function signatureFindings({ source }: KeptCheckpoint, { signature }: KeptFacts): readonly EvidenceFinding[] {
  switch (signature) {
    case 'good':
      return [];
    case 'compromised': {
      const message = `The key that signed the checkpoint of ${source} is compromised: another party may have signed it.`;
      return [found('kept_checkpoint_key_compromised', message)];
    }
    case 'none': {
      const message = `No trusted checkpoint key has signed the checkpoint of ${source}.`;
      return [found('kept_checkpoint_signature_invalid', message)];
    }
    default:
      return signature satisfies never;
  }
}

/** Independent of the signature: otherwise a relay could revoke its key and rewrite what the key has signed. */
function treeFindings(kept: KeptCheckpoint, facts: KeptFacts): readonly EvidenceFinding[] {
  const { source, size } = kept;
  if (kept.origin !== facts.origin) {
    const message = `The checkpoint of ${source} is of ${kept.origin}, the record of ${facts.origin ?? 'no transparency log'}.`;
    return [found('kept_checkpoint_origin_mismatch', message)];
  }
  if (facts.root === null) {
    const message = `The checkpoint of ${source} was signed over ${size} receipts and key events; the record has ${facts.leaves} of them: some were removed, or the record is older than the checkpoint.`;
    return [found('kept_checkpoint_ahead', message)];
  }
  if (sameHash(facts.root, kept.root)) return unrecordedFindings(kept, facts);
  const message = `The first ${size} receipts and key events have the root ${toBase64(facts.root)}, and ${toBase64(kept.root)} was signed (${source}): one of them was changed, added or removed since.`;
  return [found('kept_checkpoint_root_mismatch', message)];
}

/** It fits and is missing from the record. One that no key of the relay has signed is not expected in a record. */
const isMissed = (kept: KeptCheckpoint, { origin, root, recorded, signature }: KeptFacts): boolean =>
  kept.origin === origin && root !== null && sameHash(root, kept.root) && !recorded && signature !== 'none';

/** Sizes only grow: it cannot follow a larger one. */
const isPassed = ({ size }: KeptCheckpoint, { largest }: KeptFacts): boolean =>
  largest !== null && largest > size;

/** No finding: leaves are recorded seconds before their checkpoint, and the record may end in between. */
export const isUnreached = (kept: KeptCheckpoint, facts: KeptFacts): boolean =>
  isMissed(kept, facts) && !isPassed(kept, facts);

function unrecordedFindings(kept: KeptCheckpoint, facts: KeptFacts): readonly EvidenceFinding[] {
  if (!isMissed(kept, facts) || !isPassed(kept, facts)) return [];
  const { source, size } = kept;
  const message = `The record fits the checkpoint of ${source}, over ${size} receipts and key events, but lacks it and has a larger one: checkpoints were removed.`;
  return [found('kept_checkpoint_unrecorded', message)];
}
