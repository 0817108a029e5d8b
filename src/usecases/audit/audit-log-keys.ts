// The auditor's own evidence: the signing keys that it trusts, in whose windows those of the record are read, and the
// checkpoints that it kept.
import { type Fault, fault } from '#src/domain/audit/finding.ts';
import { type KeptCheckpoint, type KeptFacts, keptFault } from '#src/domain/audit/judge-checkpoint.ts';
import { sha256, toBase64url, utf8 } from '#src/domain/encoding.ts';
import type { KeyEvent } from '#src/domain/events.ts';
import {
  evolveKeys,
  type KeyRecord,
  narrowedKey,
  type Primitives,
  thumbprintText,
} from '#src/domain/signing-keys/keys.ts';
import { verifyOwnCheckpoint } from '#src/domain/transparency/checkpoint.ts';

/** `trusted` null: the record's own keys are. */
export function auditKeys(trusted: readonly KeyRecord[] | null, from: readonly KeyRecord[] = []) {
  let keys = from;
  const find = (keyId: string) => keys.find((known) => known.keyId === keyId);
  return {
    /** As announced so far. */
    list: () => keys,
    /** `ended`: the key before and after its retirement. */
    take(event: KeyEvent): {
      readonly faults: readonly Fault[];
      readonly ended: readonly [KeyRecord, KeyRecord] | null;
    } {
      const { keyId } = event.data;
      const before = find(keyId);
      keys = evolveKeys(keys, event).map((key) => narrowedKey(key, trusted ?? []));
      const after = find(keyId);
      if (event.type === 'SigningKeyRetired')
        return before === undefined || after === undefined
          ? { faults: [impossible(`Key ${keyId} is retired and was never announced.`)], ended: null }
          : { faults: [], ended: [before, after] };
      const { x, purpose } = event.data;
      const faults: Fault[] =
        before === undefined ? [] : [impossible(`Key ${keyId} has already been announced.`)];
      if (toBase64url(sha256(utf8(thumbprintText(x)))) !== keyId)
        faults.push(fault('key_id_mismatch', `The key id ${keyId} is not the thumbprint of its public key.`));
      if (trusted?.every((known) => known.keyId !== keyId || known.purpose !== purpose))
        faults.push(fault('key_untrusted', `The trusted key set lacks the key ${keyId}.`));
      return { faults, ended: null };
    },
    /** At the end. */
    missing: (): readonly Fault[] =>
      (trusted ?? [])
        .filter(({ keyId }) => find(keyId) === undefined)
        .map(({ keyId }) =>
          fault('key_missing', `The record lacks the trusted key ${keyId}, or is older than the key set.`),
        ),
  };
}

const impossible = (message: string): Fault => fault('key_event_impossible', message);

// ── the checkpoints that the auditor kept ───────────────────────────────────────────────────────────

export function auditKept(kept: readonly KeptCheckpoint[], primitives: Primitives) {
  /** Those that the record continues, and the latest time that the leaves of each state, Unix seconds. */
  const continued = new Map<KeptCheckpoint, number>();
  return {
    /** At the end. `keys`: the trusted ones. */
    async faults(
      keys: readonly KeyRecord[],
      factsOf: (size: number) => KeptFacts & { readonly latest: number },
    ): Promise<readonly Fault[]> {
      const faults: Fault[] = [];
      for (const checkpoint of kept) {
        const before = faults.length;
        // Of a compromised key too: otherwise a relay could revoke its key and rewrite what the key has signed.
        if ((await verifyOwnCheckpoint(checkpoint.note, keys, primitives)) === null) {
          const message = `No trusted checkpoint key has signed the checkpoint of ${checkpoint.source}.`;
          faults.push(fault('kept_checkpoint_signature_invalid', message));
        }
        const facts = factsOf(checkpoint.size);
        const unfit = keptFault(checkpoint, facts);
        if (unfit !== null) faults.push(unfit);
        if (faults.length === before) continued.set(checkpoint, facts.latest);
      }
      return faults;
    },
    /** After `faults`: the record continues it, and a trusted key has signed it. */
    isContinued: (one: KeptCheckpoint): boolean => continued.has(one),
    /**
     * After `faults`: leaves of the largest one from before this time (Unix seconds): its leaves state earlier times only.
     * null: none was kept.
     */
    before(time: number): number | null {
      const sizes = [...continued].filter(([, latest]) => latest < time).map(([{ size }]) => size);
      return sizes.length === 0 ? null : Math.max(...sizes);
    },
  };
}
