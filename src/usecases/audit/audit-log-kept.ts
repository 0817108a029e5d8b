// The checkpoints that the auditor kept: the record must still contain what each was signed over.
import type { Fault } from '#src/domain/audit/finding.ts';
import { type KeptCheckpoint, type KeptFacts, keptFault } from '#src/domain/audit/judge-checkpoint.ts';
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import { verifyOwnCheckpoint } from '#src/domain/transparency/checkpoint.ts';

export function auditKept(kept: readonly KeptCheckpoint[], primitives: Primitives) {
  /** The latest time that the leaves of each state, Unix seconds. */
  const latestIn = new Map<KeptCheckpoint, number>(kept.map((one) => [one, 0]));
  /** Those that the record continues. */
  const continued: KeptCheckpoint[] = [];
  return {
    /** A leaf that states this time (Unix seconds). `index`: from 0. */
    leaf(index: number, stated: number): void {
      for (const [one, latest] of latestIn) if (index < one.size) latestIn.set(one, Math.max(latest, stated));
    },
    /** At the end. `keys`: the trusted ones. */
    async faults(
      keys: readonly KeyRecord[],
      factsOf: (size: number) => KeptFacts,
    ): Promise<readonly Fault[]> {
      const faults: Fault[] = [];
      for (const one of kept) {
        const before = faults.length;
        // Of a compromised key too: otherwise a relay could revoke its key and rewrite what the key has signed.
        if ((await verifyOwnCheckpoint(one.note, keys, primitives)) === null) {
          const message = `no trusted checkpoint key has signed the checkpoint of ${one.source}`;
          faults.push({ kind: 'kept_checkpoint_signature_invalid', message });
        }
        const unfit = keptFault(one, factsOf(one.size));
        if (unfit !== null) faults.push(unfit);
        if (faults.length === before) continued.push(one);
      }
      return faults;
    },
    /**
     * After `faults`: leaves of the largest one from before this time (Unix seconds): its leaves state earlier times only.
     * null: none was kept.
     */
    before(time: number): number | null {
      const sizes = continued.filter((one) => (latestIn.get(one) ?? 0) < time).map(({ size }) => size);
      return sizes.length === 0 ? null : Math.max(...sizes);
    },
  };
}

export type AuditedKept = ReturnType<typeof auditKept>;
