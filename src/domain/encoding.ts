// Text and bytes without any runtime's globals: UTF-8, base64url (RFC 4648 §5, no padding), hex.

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const BASE64URL_INDEX = new Int8Array(128).fill(-1);
for (let i = 0; i < 64; i++) BASE64URL_INDEX[BASE64URL.charCodeAt(i)] = i;

/** UTF-8 bytes of well-formed text; a lone surrogate becomes U+FFFD, as in the Encoding Standard. */
export function utf8(text: string): Uint8Array<ArrayBuffer> {
  // As long as it is ASCII, which most of our text is to its end, a byte is a character.
  const ascii = new Uint8Array(text.length);
  let plain = 0;
  for (; plain < text.length; plain++) {
    const code = text.charCodeAt(plain);
    if (code >= 0x80) break;
    ascii[plain] = code;
  }
  if (plain === text.length) return ascii;
  const bytes = new Uint8Array(text.length * 3);
  bytes.set(ascii);
  let n = plain;
  for (let i = plain; i < text.length; i++) {
    let code = text.charCodeAt(i);
    if (code < 0x80) {
      bytes[n++] = code;
      continue;
    }
    if (code >= 0xd800 && code <= 0xdfff) {
      code = text.codePointAt(i) ?? 0xfffd;
      if (code > 0xffff) i++;
      else code = 0xfffd;
    }
    if (code < 0x800) bytes[n++] = 0xc0 | (code >> 6);
    else {
      if (code < 0x10000) bytes[n++] = 0xe0 | (code >> 12);
      else {
        bytes[n++] = 0xf0 | (code >> 18);
        bytes[n++] = 0x80 | ((code >> 12) & 63);
      }
      bytes[n++] = 0x80 | ((code >> 6) & 63);
    }
    bytes[n++] = 0x80 | (code & 63);
  }
  return bytes.slice(0, n);
}

/** Text of UTF-8 bytes, or null where they are not well-formed UTF-8 (RFC 3629). */
export function fromUtf8(bytes: Uint8Array): string | null {
  let text = '';
  for (let i = 0; i < bytes.length; ) {
    const end = asciiEnd(bytes, i);
    if (end > i) {
      // All of a run in one call, and none is spread: a string or an iteration each byte is most of what this takes.
      text += Reflect.apply(String.fromCharCode, null, bytes.subarray(i, end));
      i = end;
      continue;
    }
    const lead = bytes[i++] as number;
    const more =
      lead >= 0xf0 && lead < 0xf5 ? 3 : lead >= 0xe0 && lead < 0xf0 ? 2 : lead >= 0xc2 && lead < 0xe0 ? 1 : 0;
    if (more === 0 || i + more > bytes.length) return null;
    let code = lead & (0x3f >> more);
    for (let k = 0; k < more; k++) {
      const next = bytes[i++] as number;
      if ((next & 0xc0) !== 0x80) return null;
      code = (code << 6) | (next & 63);
    }
    const shortest = more === 1 ? 0x80 : more === 2 ? 0x800 : 0x10000;
    if (code < shortest || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return null;
    text += String.fromCodePoint(code);
  }
  return text;
}

/** Arguments of one call: far below what any engine takes. */
const RUN = 4096;

/** Where the run of ASCII that begins at `from` ends, or its first `RUN` bytes. */
function asciiEnd(bytes: Uint8Array, from: number): number {
  const most = Math.min(bytes.length, from + RUN);
  let end = from;
  while (end < most && (bytes[end] as number) < 0x80) end++;
  return end;
}

export function toBase64url(bytes: Uint8Array): string {
  let text = '';
  for (let i = 0; i < bytes.length; i += 3) {
    const group = ((bytes[i] ?? 0) << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    text += BASE64URL.charAt(group >> 18) + BASE64URL.charAt((group >> 12) & 63);
    if (i + 1 < bytes.length) text += BASE64URL.charAt((group >> 6) & 63);
    if (i + 2 < bytes.length) text += BASE64URL.charAt(group & 63);
  }
  return text;
}

/** Bytes of base64url text, or null for anything but its one canonical, unpadded form. */
export function fromBase64url(text: string): Uint8Array<ArrayBuffer> | null {
  if (text.length % 4 === 1) return null;
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4));
  const whole = text.length - (text.length % 4);
  let n = 0;
  for (let i = 0; i < whole; i += 4) {
    const group =
      (sextet(text, i) << 18) |
      (sextet(text, i + 1) << 12) |
      (sextet(text, i + 2) << 6) |
      sextet(text, i + 3);
    if (group < 0) return null;
    bytes[n++] = group >> 16;
    bytes[n++] = group >> 8;
    bytes[n++] = group;
  }
  if (whole === text.length) return bytes;
  // Two or three characters are left, for one or two bytes; the bits that are too many are zero.
  const third = text.length - whole === 3 ? sextet(text, whole + 2) : 0;
  const group = (sextet(text, whole) << 18) | (sextet(text, whole + 1) << 12) | (third << 6);
  const over = text.length - whole === 3 ? 0xff : 0xffff;
  if (group < 0 || (group & over) !== 0) return null;
  bytes[n++] = group >> 16;
  if (n < bytes.length) bytes[n] = group >> 8;
  return bytes;
}

/** 0 to 63, or -1, which no shift and no OR makes positive again. */
const sextet = (text: string, at: number): number => BASE64URL_INDEX[text.charCodeAt(at)] ?? -1;

/** Standard base64 with padding (RFC 4648 §4), as signed notes write it. */
export function toBase64(bytes: Uint8Array): string {
  const text = toBase64url(bytes).replaceAll('-', '+').replaceAll('_', '/');
  return text.padEnd(Math.ceil(text.length / 4) * 4, '=');
}

/** Bytes of standard base64, or null for anything but its one canonical, padded form. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  if (text.length % 4 !== 0 || /[-_]|[^=]=[^=]/.test(text)) return null;
  return fromBase64url(
    text
      .replace(/={1,2}$/, '')
      .replaceAll('+', '-')
      .replaceAll('/', '_'),
  );
}

export function toHex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += (byte < 16 ? '0' : '') + byte.toString(16);
  return text;
}

export function concatBytes(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
