// JSON that every reader reads alike (I-JSON, RFC 7493): no duplicate name, no lone surrogate, no number that a double
// changes, no nesting past the limit. What the values mean is left to the schemas.
import { hasLoneSurrogate } from '#src/domain/canonical-json.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { type InputFault, MAX_FAULTS, pointerPart } from './validation.ts';

export type StrictJson =
  | { readonly outcome: 'value'; readonly value: unknown }
  | { readonly outcome: 'syntax' }
  | { readonly outcome: 'faults'; readonly faults: readonly InputFault[] };

/** The runtime's parser decides the syntax; then the text is read again, member by member. Lists the faults in their order. */
export function parseStrictJson(text: string, maxDepth: number = LIMITS.jsonDepth.max): StrictJson {
  try {
    JSON.parse(text);
  } catch {
    return { outcome: 'syntax' };
  }
  const faults: InputFault[] = [];
  const path: (string | number)[] = [];
  let [at, tooDeep] = [0, false];
  const value = read();
  if (tooDeep) faults.splice(0, MAX_FAULTS, { path: '', message: `Nested deeper than ${maxDepth} levels` });
  return faults.length > 0 ? { outcome: 'faults', faults } : { outcome: 'value', value };

  function fault(message: string): void {
    if (faults.length === MAX_FAULTS) return;
    faults.push({ path: path.map((part) => `/${pointerPart(String(part))}`).join(''), message });
  }

  function read(): unknown {
    skipBlanks();
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      const string = readString();
      if (hasLoneSurrogate(string)) fault('Holds a lone surrogate');
      return string;
    }
    if (char !== OPEN_OBJECT && char !== OPEN_ARRAY) return readToken();
    if (path.length >= maxDepth) {
      // What is not read is not looked at again either.
      [tooDeep, at] = [true, text.length];
      return null;
    }
    return char === OPEN_OBJECT ? readObject() : readArray();
  }

  function readToken(): unknown {
    const start = at;
    while (at < text.length && !endsToken(text.charCodeAt(at))) at++;
    const token = text.slice(start, at);
    if (token === 'null') return null;
    if (token === 'true' || token === 'false') return token === 'true';
    if (!isExactNumber(token)) fault('A double cannot hold this number as written');
    return Number(token);
  }

  function readObject(): unknown {
    const object: Record<string, unknown> = {};
    while (nextMember()) {
      const name = readString();
      const broken = hasLoneSurrogate(name);
      // Such a name cannot be part of a pointer: the path of the object is reported.
      if (broken) fault('A property name holds a lone surrogate');
      path.push(name);
      if (!broken && Object.hasOwn(object, name)) fault('Property occurs more than once');
      skipBlanks();
      at++;
      const value = read();
      // `__proto__` is a name like any other.
      if (name !== '__proto__') object[name] = value;
      else
        Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
      path.pop();
    }
    return object;
  }

  function readArray(): unknown[] {
    const array: unknown[] = [];
    while (nextMember()) {
      path.push(array.length);
      array.push(read());
      path.pop();
    }
    return array;
  }

  /** Past an opening bracket or a comma, to the next member; false past the closing bracket, and at the end of the text. */
  function nextMember(): boolean {
    skipBlanks();
    if (!isClosing(text.charCodeAt(at))) at++;
    skipBlanks();
    if (at < text.length && !isClosing(text.charCodeAt(at))) return true;
    at++;
    return false;
  }

  /**
   * Parsed alone where it has an escape: V8 15 (Deno 2.9) may give such a name of an object the one that was at its place in
   * an earlier text, another caller's (nodejs/node#63785).
   */
  function readString(): string {
    const start = at++;
    let isEscaped = false;
    for (; text.charCodeAt(at) !== QUOTE; at++) {
      if (text.charCodeAt(at) !== BACKSLASH) continue;
      isEscaped = true;
      at++;
    }
    at++;
    return isEscaped ? JSON.parse(text.slice(start, at)) : text.slice(start + 1, at - 1);
  }

  function skipBlanks(): void {
    while (isBlank(text.charCodeAt(at))) at++;
  }
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];
const isBlank = (char: number) => char === 0x20 || (char >= 0x09 && char <= 0x0d);
const endsToken = (char: number) => char === COMMA || isBlank(char) || isClosing(char);
const isClosing = (char: number) => char === CLOSE_ARRAY || char === CLOSE_OBJECT;

/** False if a double gives the number back otherwise: what is sent on or signed would not be what the caller wrote. */
export function isExactNumber(text: string): boolean {
  // Written as 0 by everything that writes JSON.
  if (text.startsWith('-') && Number(text) === 0) return false;
  // A double holds any 15 digits (IEEE 754).
  if (/^[-.\d]{1,15}$/.test(text)) return true;
  const value = Number(text);
  return Number.isFinite(value) && decimalOf(text) === decimalOf(String(value));
}

/** One spelling for each decimal value, without sign: significant digits and the power of ten of the last. */
function decimalOf(text: string): string {
  const [, whole = '', fraction = '', power = '0'] =
    /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = whole + fraction;
  // Loops, not /0+$/: that takes quadratic time on a long run of zeros before another digit.
  let start = 0;
  while (digits[start] === '0') start++;
  let end = digits.length;
  while (end > start && digits[end - 1] === '0') end--;
  if (start === end) return '0';
  return `${digits.slice(start, end)}e${Number(power) - fraction.length + (digits.length - end)}`;
}
