// Cosignatures by witnesses that are written only from the standard's text, added to checkpoints and proof files.
import { type C2spKey, c2spCosignature } from './c2sp.ts';

/** `note`: a checkpoint, or a proof file, which ends with one. */
export function cosignedBy(note: string, time: number, ...witnesses: readonly C2spKey[]): string {
  const checkpoint = note.startsWith('c2sp.org/') ? note.slice(note.indexOf('\n\n') + 2) : note;
  const text = checkpoint.slice(0, checkpoint.lastIndexOf('\n\n') + 1);
  return note + witnesses.map((key) => c2spCosignature(text, key, time)).join('');
}

/** A policy file: each witness under a name, and the quorum's line. */
export const policyText = (
  witnesses: Readonly<Record<string, C2spKey>>,
  ...more: readonly string[]
): string =>
  [...Object.entries(witnesses).map(([name, { vkey }]) => `witness ${name} ${vkey}`), ...more, ''].join('\n');
