// The lines of an export, however long it is: one in memory at a time, and none longer than its reader takes.
import { MAX_LINE_BYTES } from '../domain/audit/export-format.ts';

export type Line = {
  /** From 1 on. */
  readonly number: number;
  /** Without its newline; null where it is too long, or no UTF-8. */
  readonly text: string | null;
  /** Offset of the first byte after it. */
  readonly end: number;
  /** It ends with a newline: only the last may not. */
  readonly whole: boolean;
};

const NEWLINE = 10;

export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes = MAX_LINE_BYTES,
): AsyncGenerator<Line, void, undefined> {
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let parts: Uint8Array[] = [];
  let held = 0;
  let number = 0;
  let end = 0;
  const add = (part: Uint8Array) => {
    held += part.length;
    end += part.length;
    // Of a line that is too long only its length is of interest.
    if (held <= maxBytes) parts.push(part);
  };
  const taken = (whole: boolean): Line => {
    number++;
    if (whole) end++;
    const text = held > maxBytes ? null : decoded(utf8, parts);
    parts = [];
    held = 0;
    return { number, text, end, whole };
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, at));
      yield taken(true);
      from = at + 1;
    }
    // A copy: what reads the file may use its buffer again.
    if (from < chunk.length) add(chunk.slice(from));
  }
  if (held > 0) yield taken(false);
}

function decoded(utf8: TextDecoder, parts: readonly Uint8Array[]): string | null {
  const [first = new Uint8Array(), ...more] = parts;
  try {
    return utf8.decode(more.length === 0 ? first : Buffer.concat(parts));
  } catch {
    return null;
  }
}
