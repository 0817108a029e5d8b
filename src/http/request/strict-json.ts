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
 * One scan without allocation bounds the nesting (the runtime's parser recurses) and finds what the runtime's parser
 * accepts but I-JSON does not; only a text with such a part is read a second time, member by member.
 */
export function parseStrictJson(text: string, maxDepth: number = LIMITS.jsonDepth.max): StrictJson {
  const { tooDeep, names, isSuspect } = scan(text, maxDepth);
  if (tooDeep) {
    const message = `Nested deeper than ${maxDepth} levels`;
    return { outcome: 'faults', faults: [{ path: '', message }] };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { outcome: 'syntax' };
  }
  // The runtime's parser keeps one of several members with the same name: then the counts differ.
  return isSuspect || countNames(value) !== names ? readMembers(text) : { outcome: 'value', value };
}

type Scan = { readonly tooDeep: boolean; readonly names: number; readonly isSuspect: boolean };

const [QUOTE, PLUS, MINUS, POINT, ZERO, NINE, COLON] = [0x22, 0x2b, 0x2d, 0x2e, 0x30, 0x39, 0x3a] as const;
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d] as const;
const [UPPER_E, LOWER_E] = [0x45, 0x65] as const;

/** The counts are right for JSON; for any other text only the depth has a meaning. */
function scan(text: string, maxDepth: number): Scan {
  let [depth, names, at] = [0, 0, 0];
  let nextEscape = text.indexOf('\\');
  let isSuspect = (nextEscape >= 0 && /\\u[dD][89a-fA-F]/.test(text)) || hasLoneSurrogate(text);
  while (at < text.length) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      const start = at;
      const quote = text.indexOf('"', start + 1);
      at = quote < 0 ? text.length : quote + 1;
      if (nextEscape >= 0 && nextEscape < at) {
        at = endOfString(text, start);
        isSuspect ||= isName(text, at);
        nextEscape = text.indexOf('\\', at);
      }
    } else if ((char >= ZERO && char <= NINE) || char === MINUS) {
      const end = endOfNumber(text, at);
      isSuspect ||= !isExactNumber(text, at, end);
      at = end;
    } else {
      if (char === COLON) names++;
      else if (char === OPEN_OBJECT || char === OPEN_ARRAY) {
        if (++depth > maxDepth) return { tooDeep: true, names, isSuspect };
      } else if (char === CLOSE_OBJECT || char === CLOSE_ARRAY) depth--;
      at++;
    }
  }
  return { tooDeep: false, names, isSuspect };
}

/**
 * Whether a colon follows the string that ends before `end`. The parser of V8 15 (Deno 2.9) gives a name with escapes
 * the name that was at its place in an earlier text, another caller's (nodejs/node#63785).
 */
function isName(text: string, end: number): boolean {
  let at = end;
  while (isBlank(text.charCodeAt(at))) at++;
  return text.charCodeAt(at) === COLON;
}

const isBlank = (char: number) => char === 0x20 || char === 0x0a || char === 0x0d || char === 0x09;

/** Index after the closing quote of the string that opens at `start`; the text's length if none closes it. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '"') return at + 1;
  }
  return text.length;
}

function endOfNumber(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    const char = text.charCodeAt(at);
    if (char >= ZERO && char <= NINE) continue;
    const inNumber =
      char === POINT || char === UPPER_E || char === LOWER_E || char === PLUS || char === MINUS;
    if (!inNumber) return at;
  }
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
export function isExactNumber(text: string, start = 0, end = text.length): boolean {
  // A double holds 15 digits (IEEE 754); the sign and the point only make the length an overestimate.
  if (end - start <= 15 && !hasExponent(text, start, end)) return true;
  const source = text.slice(start, end);
  const value = Number(source);
  return Number.isFinite(value) && decimalOf(source) === decimalOf(String(value));
}

function hasExponent(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const char = text.charCodeAt(at);
    if (char === LOWER_E || char === UPPER_E) return true;
  }
  return false;
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
    while (isBlank(text.charCodeAt(at))) at++;
  }
}
