// Reads one HTTP/1.1 response (RFC 9112) from the bytes of a connection that carries no other. Strict: what two readers
// could understand differently is a protocol error. The target chooses how the bytes are cut and framed, so the cost of a
// byte is bounded: the framing of chunks is read in place, without a string or an object for each of them.
import { LIMITS } from '../../domain/limits.ts';
import { invalidResponse } from './attempt.ts';
import { ChunkFraming } from './chunk-framing.ts';
import { HeaderLines } from './header-lines.ts';

export type ResponseHead = {
  readonly status: number;
  /** Names in lower case; of several lines with one name, the first. */
  readonly headers: ReadonlyMap<string, string>;
};

export type ResponseParts = {
  /** A response head: an interim one (1xx) or the final one. */
  head(head: ResponseHead): void;
  /** Bytes of the body, without the framing of chunks: those of `block` from `start` to before `end`. */
  body(block: Buffer, start: number, end: number): void;
};

/** Lines: status, header, trailer. Bytes of the body: of a known length, of a chunk, to the end of the connection. */
type Part = 'status' | 'header' | 'trailer' | 'length' | 'chunk' | 'end' | 'framing' | 'over';

const LF = 0x0a;
const VERSION = 'HTTP/1.';
/** Chunks of one byte have five. */
const LINE_BYTES_PER_BODY_BYTE = 8;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;

export class ResponseReader {
  readonly #parts: ResponseParts;
  #part: Part = 'status';
  #line = '';
  /** Bytes of the lines of all heads; then of those of the body, less what its bytes allow. */
  #lineBytes = 0;
  /** Bytes left of the body or of the chunk. */
  #left = 0;
  readonly #framing = new ChunkFraming();
  #head = { version: '', status: 0 };
  #lines = new HeaderLines();

  constructor(parts: ResponseParts) {
    this.#parts = parts;
  }

  /** Returns true when the response is complete; bytes after it are ignored. Throws `AttemptFailed`. */
  read(block: Buffer): boolean {
    for (let at = 0; at < block.length && this.#part !== 'over'; ) {
      switch (this.#part) {
        case 'status':
        case 'header':
        case 'trailer':
          at = this.#readLine(block, at);
          break;
        case 'length':
        case 'chunk':
        case 'end':
          at = this.#readBody(block, at);
          break;
        default:
          at = this.#readFraming(block, at);
      }
    }
    return this.#part === 'over';
  }

  /** Whether a response that ends with the connection is complete. */
  isCompleteAtEnd(): boolean {
    return this.#part === 'end' || this.#part === 'over';
  }

  /** Whether only the end of the connection ends the body. */
  endsWithConnection(): boolean {
    return this.#part === 'end';
  }

  #readLine(block: Buffer, at: number): number {
    const lf = block.indexOf(LF, at);
    const end = lf < 0 ? block.length : lf + 1;
    this.#countLine(end - at);
    const begun = this.#line.length;
    this.#line += block.toString('latin1', at, end);
    if (this.#part === 'status' && begun < VERSION.length && !isVersion(this.#line)) throw invalidResponse();
    if (lf < 0) return end;
    const line = this.#line;
    if (!line.endsWith('\r\n')) throw invalidResponse();
    this.#line = '';
    this.#endLine(line.slice(0, -2));
    return end;
  }

  #endLine(line: string): void {
    if (this.#part === 'status') this.#readStatus(line);
    else if (line !== '') this.#lines.add(line);
    else if (this.#part === 'trailer') this.#part = 'over';
    else this.#endHead();
  }

  #countLine(bytes: number): void {
    this.#lineBytes += bytes;
    if (this.#lineBytes > LIMITS.responseHeaderBytes.max) throw invalidResponse('response_head_too_large');
  }

  #readBody(block: Buffer, at: number): number {
    const end = this.#part === 'end' ? block.length : Math.min(block.length, at + this.#left);
    this.#left -= end - at;
    this.#lineBytes = Math.max(0, this.#lineBytes - LINE_BYTES_PER_BODY_BYTE * (end - at));
    this.#parts.body(block, at, end);
    if (this.#part !== 'end' && this.#left === 0) this.#part = this.#part === 'chunk' ? 'framing' : 'over';
    return end;
  }

  /** Reads from one chunk to the next. */
  #readFraming(block: Buffer, from: number): number {
    const start = this.#framing.read(block, from);
    const end = start < 0 ? block.length : start;
    this.#countLine(end - from);
    if (start < 0) return end;
    this.#left = this.#framing.size;
    this.#part = this.#left === 0 ? 'trailer' : 'chunk';
    if (this.#part === 'trailer') this.#lines = new HeaderLines();
    return end;
  }

  #readStatus(line: string): void {
    const [, version, status] = STATUS_LINE.exec(line) ?? [];
    if (version === undefined) throw invalidResponse();
    this.#head = { version, status: Number(status) };
    this.#lines = new HeaderLines();
    this.#part = 'header';
  }

  #endHead(): void {
    const { status, version } = this.#head;
    const { headers } = this.#lines;
    const isInterim = status < 200 && status !== 101;
    const framing = isInterim || status === 204 || status === 304 ? NO_BODY : framingOf(headers, version);
    this.#parts.head({ status, headers });
    if (!isInterim) this.#lineBytes = 0;
    this.#left = framing.length;
    this.#part = isInterim ? 'status' : framing.part;
  }
}

/** Whether a line begins, as far as it has arrived, with the version. */
const isVersion = (line: string) => VERSION.startsWith(line.slice(0, VERSION.length));

type Framing = { readonly part: Part; readonly length: number };
const NO_BODY: Framing = { part: 'over', length: 0 };

/**
 * RFC 9112 §6.3, for a response that can have a body. The request accepts no transfer coding but `chunked`; HTTP/1.0 has none
 * (§6.1).
 */
function framingOf(headers: ResponseHead['headers'], version: string): Framing {
  const length = headers.get('content-length');
  const encoding = headers.get('transfer-encoding');
  if (encoding !== undefined) {
    const coding = encoding.toLowerCase();
    if (length !== undefined || version === '0' || !['chunked', 'identity'].includes(coding))
      throw invalidResponse();
    return { part: coding === 'chunked' ? 'framing' : 'end', length: 0 };
  }
  if (length === undefined) return { part: 'end', length: 0 };
  if (!/^\d{1,15}$/.test(length)) throw invalidResponse();
  return Number(length) === 0 ? NO_BODY : { part: 'length', length: Number(length) };
}
