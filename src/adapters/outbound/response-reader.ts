// Reads one HTTP/1.1 response (RFC 9112) from the bytes of a connection that carries no other. Strict: what two readers
// could understand differently is a protocol error.
import { isHeaderName } from '../../domain/destination/headers.ts';
import { LIMITS } from '../../domain/limits.ts';
import { AttemptFailed } from './attempt.ts';

export type ResponseHead = {
  readonly status: number;
  /** Names in lower case; of several lines with one name, the first. */
  readonly headers: ReadonlyMap<string, string>;
};

export type ResponseParts = {
  /** A response head: an interim one (1xx) or the final one. */
  head(head: ResponseHead): void;
  /** Bytes of the body, without the framing of chunks. */
  body(bytes: Buffer): void;
};

/** Lines: status, header, chunk size, the end of a chunk, trailer. Bytes: of a known length, of a chunk, to the end. */
type Part = 'status' | 'header' | 'size' | 'gap' | 'trailer' | 'length' | 'chunk' | 'end' | 'over';

const EMPTY = Buffer.alloc(0);
const VERSION = 'HTTP/1.';
/** Chunks of one byte have five. */
const LINE_BYTES_PER_BODY_BYTE = 8;
const STATUS_LINE = /^HTTP\/1\.[01] ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

export class ResponseReader {
  readonly #parts: ResponseParts;
  #part: Part = 'status';
  #unread: Buffer = EMPTY;
  /** Bytes of the lines of all heads; then of those of the body, less what its bytes allow. */
  #lineBytes = 0;
  /** Bytes left of the body or of the chunk. */
  #left = 0;
  #status = 0;
  #headers = new Map<string, string>();

  constructor(parts: ResponseParts) {
    this.#parts = parts;
  }

  /** Returns true when the response is complete; bytes after it are ignored. Throws `AttemptFailed`. */
  read(bytes: Buffer): boolean {
    this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
    while (this.#part !== 'over' && this.#step());
    return this.#part === 'over';
  }

  /** Whether a response that ends with the connection is complete. */
  isCompleteAtEnd(): boolean {
    return this.#part === 'end' || this.#part === 'over';
  }

  /** Reads one line, or the bytes of the body that have arrived. Returns false if more bytes are required. */
  #step(): boolean {
    if (this.#part === 'length' || this.#part === 'chunk' || this.#part === 'end') return this.#readBytes();
    const line = this.#nextLine();
    if (line === null) return false;
    if (this.#part === 'status') this.#readStatus(line);
    else if (this.#part === 'header') {
      if (line === '') this.#endHead();
      else this.#readHeader(line);
    } else if (this.#part === 'size') this.#readSize(line);
    else if (this.#part === 'gap') {
      if (line !== '') throw invalid();
      this.#part = 'size';
    } else if (line === '') this.#part = 'over';
    else headerIn(line);
    return true;
  }

  #readBytes(): boolean {
    const bytes = this.#part === 'end' ? this.#unread : this.#unread.subarray(0, this.#left);
    this.#unread = this.#unread.subarray(bytes.length);
    this.#left -= bytes.length;
    this.#lineBytes = Math.max(0, this.#lineBytes - LINE_BYTES_PER_BODY_BYTE * bytes.length);
    if (bytes.length > 0) this.#parts.body(bytes);
    if (this.#part === 'end' || this.#left > 0) return false;
    this.#part = this.#part === 'chunk' ? 'gap' : 'over';
    return true;
  }

  /** The next line without its CRLF; null if it has not arrived. */
  #nextLine(): string | null {
    const unread = this.#unread;
    const end = unread.indexOf(0x0a);
    if (this.#lineBytes + (end < 0 ? unread.length : end) > LIMITS.responseHeaderBytes.max) throw invalid();
    if (end < 0) {
      const begun = unread.toString('latin1', 0, VERSION.length);
      if (this.#part === 'status' && !VERSION.startsWith(begun)) throw invalid();
      return null;
    }
    if (end === 0 || unread[end - 1] !== 0x0d) throw invalid();
    this.#lineBytes += end + 1;
    this.#unread = unread.subarray(end + 1);
    return unread.toString('latin1', 0, end - 1);
  }

  #readStatus(line: string): void {
    const [, status] = STATUS_LINE.exec(line) ?? [];
    if (status === undefined) throw invalid();
    this.#status = Number(status);
    this.#headers = new Map();
    this.#part = 'header';
  }

  #readHeader(line: string): void {
    const [name, value] = headerIn(line);
    const known = this.#headers.get(name);
    if (known === undefined) this.#headers.set(name, value);
    else if (name === 'content-length') throw invalid();
    else if (name === 'transfer-encoding') this.#headers.set(name, `${known}, ${value}`);
  }

  #endHead(): void {
    const [status, headers] = [this.#status, this.#headers];
    const isInterim = status < 200 && status !== 101;
    const framing = isInterim || status === 204 || status === 304 ? NO_BODY : framingOf(headers);
    this.#parts.head({ status, headers });
    if (!isInterim) this.#lineBytes = 0;
    this.#left = framing.length;
    this.#part = isInterim ? 'status' : framing.part;
  }

  #readSize(line: string): void {
    const [, size] = /^([0-9a-f]{1,12})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/i.exec(line) ?? [];
    if (size === undefined) throw invalid();
    this.#left = Number.parseInt(size, 16);
    this.#part = this.#left === 0 ? 'trailer' : 'chunk';
  }
}

const invalid = () => new AttemptFailed('protocol_error');

function headerIn(line: string): readonly [name: string, value: string] {
  const colon = line.indexOf(':');
  const [name, value] = [line.slice(0, Math.max(0, colon)), line.slice(colon + 1)];
  if (!isHeaderName(name) || !VALUE.test(value)) throw invalid();
  return [name.toLowerCase(), withoutBlanks(value)];
}

/** Without blanks around it (RFC 9110 §5.6.3); `trim` would also remove the byte A0. */
function withoutBlanks(value: string): string {
  const isBlank = (at: number) => value[at] === ' ' || value[at] === '\t';
  let [start, end] = [0, value.length];
  while (start < end && isBlank(start)) start++;
  while (end > start && isBlank(end - 1)) end--;
  return value.slice(start, end);
}

type Framing = { readonly part: Part; readonly length: number };
const NO_BODY: Framing = { part: 'length', length: 0 };

/** RFC 9112 §6.3, for a response that can have a body. */
function framingOf(headers: ResponseHead['headers']): Framing {
  const length = headers.get('content-length');
  const encoding = headers.get('transfer-encoding');
  if (encoding !== undefined) {
    if (length !== undefined) throw invalid();
    return { part: /(?:^|,)[ \t]*chunked$/i.test(encoding) ? 'size' : 'end', length: 0 };
  }
  if (length === undefined) return { part: 'end', length: 0 };
  if (!/^\d{1,15}$/.test(length)) throw invalid();
  return { part: 'length', length: Number(length) };
}
