// What is between the chunks of a body (RFC 9112 §7.1), byte by byte: a target may send chunks of one byte.
import { invalidResponse } from './attempt.ts';

const LF = 0x0a;
const CR = 0x0d;
const SIZE_DIGITS_MAX = 12;

/** The digits of a size, blanks after it, an extension, the LF of the size line, the CR and the LF after a chunk. */
type Part = 'size' | 'blanks' | 'extension' | 'lf' | 'chunk-cr' | 'chunk-lf';

export class ChunkFraming {
  #part: Part = 'size';
  #digits = 0;
  /** Of the chunk that follows; 0: the trailers follow. */
  size = 0;

  /** Returns where the chunk or the trailers begin; -1: not in this block. Throws `AttemptFailed`. */
  read(block: Buffer, from: number): number {
    let part = this.#part;
    for (let at = from; at < block.length; at++) {
      const byte = block[at] ?? 0;
      if (part === 'size') {
        const digit = hexDigit(byte);
        if (digit < 0) part = this.#afterSize(byte);
        else this.#addDigit(digit);
      } else if (part === 'blanks') part = this.#afterSize(byte);
      else if (part === 'extension') {
        if (byte === CR) part = 'lf';
        else if (byte !== 0x09 && (byte < 0x20 || byte === 0x7f)) throw invalidResponse();
      } else {
        if (byte !== (part === 'chunk-cr' ? CR : LF)) throw invalidResponse();
        if (part === 'lf') {
          this.#part = 'chunk-cr';
          return at + 1;
        }
        if (part === 'chunk-lf') this.#digits = this.size = 0;
        part = part === 'chunk-cr' ? 'chunk-lf' : 'size';
      }
    }
    this.#part = part;
    return -1;
  }

  #addDigit(digit: number): void {
    if (++this.#digits > SIZE_DIGITS_MAX) throw invalidResponse();
    this.size = this.size * 16 + digit;
  }

  /** `byte`: the first one after the digits of a size, or after blanks that follow them. */
  #afterSize(byte: number): Part {
    if (this.#digits === 0) throw invalidResponse();
    if (byte === CR) return 'lf';
    if (byte === 0x3b) return 'extension';
    if (byte === 0x20 || byte === 0x09) return 'blanks';
    throw invalidResponse();
  }
}

/** -1: no hexadecimal digit. */
function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x61 + 10 : -1;
}
