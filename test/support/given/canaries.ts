// Words that must not turn up elsewhere, and a search for them in every form that a program may have written them in.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const MARK = '9k4w8canary';

/** A word for one place. Lower-case letters and digits: the same in a URL, a header name and a host name. */
export const canaryFor = (place: string): string => `zq7${place}${MARK}`;

export function formsOf(word: string): Buffer[] {
  const bytes = Buffer.from(word);
  const texts = [
    word,
    word.toUpperCase(),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
    ...[0, 1, 2].map((offset) => insideBase64(bytes, offset)),
  ];
  const utf16 = Buffer.from(word, 'utf16le');
  return [...texts.map((text) => Buffer.from(text)), utf16, Buffer.from(utf16).swap16()];
}

/** The part of its base64 that is the same whatever stands before and after it, `offset` bytes after a group's start. */
function insideBase64(bytes: Buffer, offset: number): string {
  const padded = Buffer.concat([Buffer.alloc(offset), bytes]);
  const whole = padded.subarray(0, padded.length - (padded.length % 3)).toString('base64');
  return whole.slice(offset === 0 ? 0 : 4);
}

/** The words (of `canaryFor`) that stand in `data`, in any form. */
export function wordsIn(words: readonly string[], data: Buffer | string): string[] {
  // One character a byte: runtimes search in strings far faster than in buffers.
  const text = Buffer.from(data).toString('latin1');
  const holds = (word: string) => formsOf(word).some((form) => text.includes(form.toString('latin1')));
  return holds(MARK) ? words.filter(holds) : [];
}

/** Every file below `folder`, with its bytes. */
export function filesBelow(folder: string): (readonly [path: string, bytes: Buffer])[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path, readFileSync(path)] as const;
    });
}
