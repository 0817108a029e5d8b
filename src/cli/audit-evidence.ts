// What the auditor has kept, as files: a checkpoint, bare or in the answer that a buyer got with it.
import type { KeptCheckpoint } from '../domain/audit/evidence.ts';
import { parseCheckpoint } from '../domain/transparency/checkpoint.ts';
import { CannotRun } from './exit.ts';
import { nameOf, readSource } from './read-source.ts';

/** Throws `CannotRun`. */
export async function readCheckpoint(source: string): Promise<KeptCheckpoint> {
  const note = noteIn(await readSource(source));
  const head = note === null ? null : parseCheckpoint(note);
  if (note === null || head === null)
    throw new CannotRun(
      `${nameOf(source)} is no checkpoint: it is the text of /log/checkpoint, or an execution response with one`,
    );
  return { ...head, source: nameOf(source), note };
}

/** A signed note begins with its origin, which is no JSON. */
function noteIn(text: string): string | null {
  if (!text.trimStart().startsWith('{')) return text;
  try {
    const value: unknown = JSON.parse(text);
    const has = typeof value === 'object' && value !== null && 'checkpoint' in value;
    return has && typeof value.checkpoint === 'string' ? value.checkpoint : null;
  } catch {
    return null;
  }
}
