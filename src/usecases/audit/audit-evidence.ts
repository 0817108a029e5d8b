// Compares the record with an auditor's own evidence, at its end.
import {
  type AnnouncedKey,
  compareCheckpoint,
  compareKeys,
  type KeptCheckpoint,
  type KeptFacts,
} from '#src/domain/audit/evidence.ts';
import { type Found, NOWHERE } from '#src/domain/audit/finding.ts';
import type { Primitives } from '#src/domain/receipt/report.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { verifyCheckpoint, verifyOwnCheckpoint } from '#src/domain/transparency/checkpoint.ts';

export type KeptEvidence = {
  /** null: the record's own keys are trusted. */
  readonly keys: readonly KeyRecord[] | null;
  readonly checkpoints: readonly KeptCheckpoint[];
};

export const NO_EVIDENCE: KeptEvidence = { keys: null, checkpoints: [] };

/** `factsOf`: the record's facts for a kept checkpoint. */
export async function compareEvidence(
  kept: KeptEvidence,
  announced: readonly AnnouncedKey[],
  factsOf: (checkpoint: KeptCheckpoint) => Promise<Omit<KeptFacts, 'signature'>>,
  primitives: Primitives,
): Promise<{ readonly found: readonly Found[]; readonly unreached: number }> {
  const found = kept.keys === null ? [] : [...compareKeys(announced, kept.keys)];
  const trusted = kept.keys ?? announced.map(({ key }) => key);
  let unreached = 0;
  for (const checkpoint of kept.checkpoints) {
    const signature = await signatureOf(checkpoint, trusted, primitives);
    const verdict = compareCheckpoint(checkpoint, { ...(await factsOf(checkpoint)), signature });
    found.push(...verdict.faults.map((fault) => ({ fault, location: NOWHERE })));
    if (verdict.unreached) unreached++;
  }
  return { found, unreached };
}

/** `keys`: the trusted ones. */
async function signatureOf(
  { note }: KeptCheckpoint,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<KeptFacts['signature']> {
  if ((await verifyCheckpoint(note, keys, primitives)) !== null) return 'good';
  return (await verifyOwnCheckpoint(note, keys, primitives)) === null ? 'none' : 'compromised';
}
