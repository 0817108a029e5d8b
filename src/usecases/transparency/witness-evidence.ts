// What witnesses show or state of checkpoints that the event log may lack.
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import { type TreeHead, verifySignedCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import type { KeyDirectory } from '#src/usecases/signing-keys/key-ring.ts';
import type { WitnessClaims } from './checkpoint-state.ts';
import type { knownCheckpoints } from './known-checkpoints.ts';

export type WitnessEvidenceDeps = {
  readonly known: ReturnType<typeof knownCheckpoints>;
  readonly directory: Pick<KeyDirectory, 'refresh'>;
  /** Those of the event log and those of the key file: a restored log may lack the newest. */
  readonly checkpointKeys: () => readonly KeyRecord[];
  readonly primitives: Primitives;
};

export function witnessEvidence({ known, directory, checkpointKeys, primitives }: WitnessEvidenceDeps) {
  /** Reads the event log first: another process may have signed. Throws what a read of the log throws. */
  async function lacks(size: number): Promise<boolean> {
    const last = await known.refresh();
    return size > (last?.stored?.size ?? 0);
  }

  /** Keys that are not compromised: who has a compromised key can sign a checkpoint of any size. */
  async function trustedKeys(): Promise<readonly KeyRecord[]> {
    const recorded = await directory.refresh();
    const compromised = new Set(
      recorded.filter(({ compromisedAt }) => compromisedAt !== null).map(({ keyId }) => keyId),
    );
    return [...recorded, ...checkpointKeys()].filter(({ keyId }) => !compromised.has(keyId));
  }

  /** null: no checkpoint of this log by a key of it that is not compromised. */
  async function signedHere(note: string): Promise<TreeHead | null> {
    const found = await verifySignedCheckpoint(note, await trustedKeys(), primitives);
    return found?.origin === known.state().log?.origin ? found : null;
  }

  return {
    signedHere,
    /** Whether the event log has no checkpoint of so many leaves or more. Throws what a read of the log throws. */
    lacks,

    /**
     * Keeps a checkpoint that a witness publishes as any other known one, if a key of this log that is not compromised has
     * signed it. Returns whether the event log lacks it. Throws what a read of the log throws.
     */
    async witnessPublished(witness: string, note: string): Promise<boolean> {
      const found = await signedHere(note);
      if (found === null) return false;
      const { origin, size, root } = found;
      known.record({ kind: 'witness_published', by: { witness, size } });
      await known.remember({ origin, size, root, note, place: null, signedAt: null });
      // It is known before the log is read: what another process has signed meanwhile is not missing.
      return lacks(size);
    },

    /** What witnesses state and show now. */
    witnessClaims: (claims: WitnessClaims) => known.record({ kind: 'witness_claims', claims }),
  };
}
