// Reads a checkpoint that the user kept: bare, or in an execution response.
import { isObject } from '#src/lib/is-object.ts';
import { parsedJson } from '../domain/canonical-json.ts';
import { parseCheckpoint, type TreeHead } from '../domain/transparency/checkpoint.ts';
import { CannotRun } from './exit.ts';
import { nameOf, readSource } from './read-source.ts';

/** Its signature is not verified here. Throws `CannotRun`. */
export async function readCheckpoint(
  source: string,
): Promise<TreeHead & { readonly source: string; readonly note: string }> {
  const note = noteIn(await readSource(source));
  const head = note === null ? null : parseCheckpoint(note);
  if (note === null || head === null)
    throw new CannotRun(
      `${nameOf(source)} is not a checkpoint: it must be the text of /log/checkpoint, or an execution response with one`,
    );
  return { ...head, source: nameOf(source), note };
}

/** A signed note begins with its origin, which is not JSON. */
function noteIn(text: string): string | null {
  if (!text.trimStart().startsWith('{')) return text;
  const value = parsedJson(text);
  return isObject(value) && typeof value.checkpoint === 'string' ? value.checkpoint : null;
}
