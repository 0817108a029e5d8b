// JSON that every reader reads alike (I-JSON, RFC 7493): no duplicate name, no lone surrogate, no number that a double
// changes, no nesting past the limit. What the values mean is left to the schemas.
import { hasLoneSurrogate } from '#src/domain/canonical-json.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { type InputFault, MAX_FAULTS, pointerPart } from './validation.ts';

export type StrictJson =
  | { readonly outcome: 'value'; readonly value: unknown }
  | { readonly outcome: 'syntax' }
  | { readonly outcome: 'faults'; readonly faults: readonly InputFault[] };

/**
 * The nesting is bounded first (the runtime's parser recurses). The runtime's parser then decides the syntax; only a text
 * with something that it accepts and I-JSON does not, or that may be such a thing, is read a second time, member by member.
 */
export function parseStrictJson(text: string, maxDepth: number = LIMITS.jsonDepth.max): StrictJson {
  if (depthOf(text) > maxDepth) {
    const message = `Nested deeper than ${maxDepth} levels`;
    return { outcome: 'faults', faults: [{ path: '', message }] };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { outcome: 'syntax' };
  }
  return SUSPECT.test(text) || hasLoneSurrogate(text) || countNames(value) !== colonsAfterStrings(text)
    ? readMembers(text)
    : { outcome: 'value', value };
}

/**
 * An escaped surrogate; an escape in a name: the parser of V8 15 (Deno 2.9) gives such a name the one that was at its place
 * in an earlier text, another caller's (nodejs/node#63785); a number that 15 digits (IEEE 754) may not hold.
 */
const SUSPECT = /\\u[dD][89a-fA-F]|\\.[^"\\]*"[ \t\n\r]*:|(?:^|[:,[\s])-?(?:[\d.]{16}|[\d.]+[eE])/;

/** At least as many as there are names. The parser keeps one of several members with the same name. */
const colonsAfterStrings = (text: string) => text.match(/"[ \t\n\r]*:/g)?.length ?? 0;

function depthOf(text: string): number {
  let [depth, deepest] = [0, 0];
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) at = endOfString(text, at) - 1;
    else if (char === OPEN_OBJECT || char === OPEN_ARRAY) deepest = Math.max(deepest, ++depth);
    else if (char === CLOSE_OBJECT || char === CLOSE_ARRAY) depth--;
  }
  return deepest;
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Index after the closing quote of the string that opens at `start`; the text's length if none closes it. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === BACKSLASH) at++;
    else if (char === QUOTE) return at + 1;
  }
  return text.length;
}

function countNames(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countNames(item);
    return count;
  }
  const members = Object.values(value);
  for (const member of members) count += countNames(member);
  return count + members.length;
}

/** False if a double gives the number back otherwise: what is sent on or signed would not be what the caller wrote. */
export function isExactNumber(text: string): boolean {
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

/** `text`: known to be JSON, and nested so little that recursion is no danger. Lists the faults in their order. */
function readMembers(text: string): StrictJson {
  const faults: InputFault[] = [];
  const path: string[] = [];
  let at = 0;
  const value = read();
  return faults.length > 0 ? { outcome: 'faults', faults } : { outcome: 'value', value };

  function fault(message: string): void {
    if (faults.length < MAX_FAULTS) faults.push({ path: path.join(''), message });
  }

  function read(): unknown {
    skipBlanks();
    const char = text.charAt(at);
    if (char === '{') return readObject();
    if (char === '[') return readArray();
    if (char === '"') {
      const string = readString();
      if (hasLoneSurrogate(string)) fault('Holds a lone surrogate');
      return string;
    }
    const start = at;
    while (at < text.length && !/[,\]}\s]/.test(text.charAt(at))) at++;
    const token = text.slice(start, at);
    if (/^[-\d]/.test(token) && !isExactNumber(token)) fault('A double cannot hold this number as written');
    return JSON.parse(token);
  }

  function readObject(): unknown {
    const object = {};
    const names = new Set<string>();
    for (nextMember(); text.charAt(at) !== '}'; nextMember()) {
      const name = readString();
      const broken = hasLoneSurrogate(name);
      // Such a name cannot be part of a pointer: the path of the object is reported.
      if (broken) fault('A property name holds a lone surrogate');
      path.push(`/${pointerPart(name)}`);
      if (!broken && names.has(name)) fault('Property occurs more than once');
      names.add(name);
      skipBlanks();
      at++;
      // Not by assignment: `__proto__` is a name like any other.
      Object.defineProperty(object, name, {
        value: read(),
        writable: true,
        enumerable: true,
        configurable: true,
      });
      path.pop();
      skipBlanks();
    }
    at++;
    return object;
  }

  function readArray(): unknown[] {
    const array: unknown[] = [];
    for (nextMember(); text.charAt(at) !== ']'; nextMember()) {
      path.push(`/${array.length}`);
      array.push(read());
      path.pop();
      skipBlanks();
    }
    at++;
    return array;
  }

  /** Past an opening bracket or a comma, to the next member or the closing bracket. */
  function nextMember(): void {
    if (/[{[,]/.test(text.charAt(at))) at++;
    skipBlanks();
  }

  function readString(): string {
    const start = at;
    at = endOfString(text, start);
    return JSON.parse(text.slice(start, at));
  }

  function skipBlanks(): void {
    while (/[ \t\n\r]/.test(text.charAt(at))) at++;
  }
}
