// Compares the record with an auditor's own evidence: keys and checkpoints kept from before. A relay that rewrites its
// whole history with other keys writes a consistent record, which contradicts this evidence.
import { toBase64 } from '#src/domain/encoding.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import type { TreeHead } from '../transparency/checkpoint.ts';
import { type Hash, sameHash } from '../transparency/merkle.ts';
import { type EventLocation, type Fault, type Found, NOWHERE } from './finding.ts';

/** A key as the record announced it, and the event that did. */
export type AnnouncedKey = { readonly key: KeyRecord; readonly location: EventLocation };

/** `trusted` may be older than the record: a retirement that only the record has is no finding. */
export function compareKeys(
  announced: readonly AnnouncedKey[],
  trusted: readonly KeyRecord[],
): readonly Found[] {
  const missing = trusted.filter((key) => !announced.some((other) => sameKey(other.key, key)));
  return [
    ...announced.flatMap(({ key, location }): readonly Found[] => {
      const { keyId } = key;
      const known = trusted.find((other) => sameKey(other, key));
      const untrusted = `the trusted key set does not contain the key ${keyId}`;
      if (known === undefined) return [{ fault: { kind: 'key_untrusted', message: untrusted }, location }];
      const wider = `the record lets the key ${keyId} sign when the trusted key set does not, or the record is older than the key set`;
      return isWider(key, known) ? [{ fault: { kind: 'key_window_wider', message: wider }, location }] : [];
    }),
    ...missing.map(({ keyId }): Found => {
      const message = `the trusted key set contains the key ${keyId}, and the record does not, or the record is older than the key set`;
      return { fault: { kind: 'key_missing', message }, location: NOWHERE };
    }),
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

/**
 * `unreached`: it fits, and the record has neither it nor a larger one. That is no finding: leaves are recorded seconds before
 * their checkpoint, and the record may end in between.
 */
export function compareCheckpoint(
  kept: KeptCheckpoint,
  facts: KeptFacts,
): { readonly faults: readonly Fault[]; readonly unreached: boolean } {
  const { recorded, largest, signature } = facts;
  const faults = signatureFaults(kept, signature);
  // Independent of the signature: otherwise a relay could revoke its key and rewrite what the key has signed.
  const unfit = unfitFault(kept, facts);
  if (unfit !== null) return { faults: [...faults, unfit], unreached: false };
  // One that no key of the relay has signed is not expected in a record.
  if (recorded || signature === 'none') return { faults, unreached: false };
  // Sizes only grow: it cannot follow a larger one.
  if (largest === null || largest <= kept.size) return { faults, unreached: true };
  const message = `the record fits the checkpoint of ${kept.source}, over ${kept.size} receipts and key events, but lacks it and has a larger one: checkpoints were removed`;
  return { faults: [...faults, { kind: 'kept_checkpoint_unrecorded', message }], unreached: false };
}

function signatureFaults({ source }: KeptCheckpoint, signature: KeptFacts['signature']): readonly Fault[] {
  if (signature === 'good') return [];
  if (signature === 'compromised') {
    const message = `the key that signed the checkpoint of ${source} is compromised: another party may have signed it`;
    return [{ kind: 'kept_checkpoint_key_compromised', message }];
  }
  const message = `no trusted checkpoint key has signed the checkpoint of ${source}`;
  return [{ kind: 'kept_checkpoint_signature_invalid', message }];
}

function unfitFault(kept: KeptCheckpoint, facts: KeptFacts): Fault | null {
  const { source, size } = kept;
  if (kept.origin !== facts.origin) {
    const message = `the checkpoint of ${source} is of ${kept.origin}, the record of ${facts.origin ?? 'no transparency log'}`;
    return { kind: 'kept_checkpoint_origin_mismatch', message };
  }
  if (facts.root === null) {
    const message = `the checkpoint of ${source} was signed over ${size} receipts and key events; the record has ${facts.leaves} of them: some were removed, or the record is older than the checkpoint`;
    return { kind: 'kept_checkpoint_ahead', message };
  }
  if (sameHash(facts.root, kept.root)) return null;
  const message = `the first ${size} receipts and key events have the root ${toBase64(facts.root)}, and ${toBase64(kept.root)} was signed (${source}): one of them was changed, added or removed since`;
  return { kind: 'kept_checkpoint_root_mismatch', message };
}
