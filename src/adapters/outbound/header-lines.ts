// The header lines of one response head, or the lines of its trailers.
import { isHeaderName } from '../../domain/destination/headers.ts';
import { invalidResponse } from './attempt.ts';

const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** The headers that say where the body ends. */
const FRAMING = ['content-length', 'transfer-encoding'];

export class HeaderLines {
  /** Names in lower case; of several lines with one name, the first. */
  readonly headers = new Map<string, string>();
  /** The line that a folded line continues. `isKept`: its value counts. */
  #last: { readonly name: string; readonly isKept: boolean } | null = null;

  /** `line`: not empty, without its end. Throws `AttemptFailed`. */
  add(line: string): void {
    if (line.startsWith(' ') || line.startsWith('\t')) this.#fold(line);
    else this.#read(line);
  }

  #read(line: string): void {
    const colon = line.indexOf(':');
    const [name, value] = [line.slice(0, Math.max(0, colon)), line.slice(colon + 1)];
    if (!isHeaderName(name) || !VALUE.test(value)) throw invalidResponse();
    this.#set(name.toLowerCase(), withoutBlanks(value));
  }

  #set(name: string, value: string): void {
    const isKept = !this.headers.has(name);
    if (isKept) this.headers.set(name, value);
    else if (FRAMING.includes(name)) throw invalidResponse();
    this.#last = { name, isKept };
  }

  /** Replaces the fold by a blank (RFC 9112 §5.2), except where two readers could find two ends of the body. */
  #fold(line: string): void {
    if (this.#last === null || FRAMING.includes(this.#last.name) || !VALUE.test(line))
      throw invalidResponse();
    const { name, isKept } = this.#last;
    const [begun, rest] = [this.headers.get(name) ?? '', withoutBlanks(line)];
    if (isKept) this.headers.set(name, begun === '' || rest === '' ? begun + rest : `${begun} ${rest}`);
  }
}

/** Without blanks around it (RFC 9110 §5.6.3); `trim` would also remove the byte A0. */
function withoutBlanks(value: string): string {
  const isBlank = (at: number) => value[at] === ' ' || value[at] === '\t';
  let [start, end] = [0, value.length];
  while (start < end && isBlank(start)) start++;
  while (end > start && isBlank(end - 1)) end--;
  return value.slice(start, end);
}
