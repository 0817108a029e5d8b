// What is between the chunks of a body (RFC 9112 §7.1), byte by byte: a target may send chunks of one byte.
import { invalid } from './attempt.ts';

const LF = 0x0a;
const CR = 0x0d;
const SIZE_DIGITS_MAX = 12;

export class ChunkFraming {
  /** The digits of a size, blanks after it, an extension, the LF of the size line, the CR and the LF after a chunk. */
  #part: 'size' | 'blanks' | 'extension' | 'lf' | 'chunk-cr' | 'chunk-lf' = 'size';
  #digits = 0;
  /** Of the chunk that follows; 0: the trailers follow. */
  size = 0;

  /** Returns true after the last byte before a chunk or the trailers. */
  read(byte: number): boolean {
    switch (this.#part) {
      case 'size': {
        const digit = hexDigit(byte);
        if (digit < 0) this.#endSize(byte);
        else if (++this.#digits > SIZE_DIGITS_MAX) throw invalid();
        else this.size = this.size * 16 + digit;
        break;
      }
      case 'blanks':
        this.#endSize(byte);
        break;
      case 'extension':
        if (byte === CR) this.#part = 'lf';
        else if (byte !== 0x09 && (byte < 0x20 || byte === 0x7f)) throw invalid();
        break;
      case 'lf':
        if (byte !== LF) throw invalid();
        this.#part = 'chunk-cr';
        return true;
      case 'chunk-cr':
        if (byte !== CR) throw invalid();
        this.#part = 'chunk-lf';
        break;
      default:
        if (byte !== LF) throw invalid();
        this.#part = 'size';
        this.#digits = 0;
        this.size = 0;
    }
    return false;
  }

  /** The first byte after the digits of a size, or after blanks that follow them. */
  #endSize(byte: number): void {
    if (this.#digits === 0) throw invalid();
    if (byte === CR) this.#part = 'lf';
    else if (byte === 0x3b) this.#part = 'extension';
    else if (byte === 0x20 || byte === 0x09) this.#part = 'blanks';
    else throw invalid();
  }
}

/** -1: no hexadecimal digit. */
function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x61 + 10 : -1;
}
