// JSON that every reader reads alike (I-JSON, RFC 7493): no name twice, no half a character, no number that a double
// cannot give back as written, no nesting past the limit. It leaves what the values mean to the schemas.
import { hasLoneSurrogate } from '#src/domain/canonical-json.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { endOfString, parseByName } from './escaped-names.ts';
import { isExactNumber } from './exact-number.ts';
import { type InputFault, MAX_FAULTS, pointerPart } from './validation-error.ts';

export type StrictJson =
  | { readonly outcome: 'value'; readonly value: unknown }
  | { readonly outcome: 'syntax' }
  | { readonly outcome: 'faults'; readonly faults: readonly InputFault[] };

export function parseStrictJson(text: string, maxDepth: number = LIMITS.jsonDepth.max): StrictJson {
  // Before the runtime's parser, which recurses.
  if (nestsDeeperThan(maxDepth, text)) {
    const message = `Nested deeper than ${maxDepth} levels`;
    return { outcome: 'faults', faults: [{ path: '', message }] };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { outcome: 'syntax' };
  }
  const { faults, hasEscapedName } = look(text);
  if (faults.length > 0) return { outcome: 'faults', faults };
  return { outcome: 'value', value: hasEscapedName ? parseByName(text) : value };
}

function nestsDeeperThan(limit: number, text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') at = endOfString(text, at) - 1;
    else if (char === '{' || char === '[') {
      if (++depth > limit) return true;
    } else if (char === '}' || char === ']') depth--;
  }
  return false;
}

/** `names` null: an array. `place`: the name or the index that a value now stands under. */
type Level = { readonly names: Set<string> | null; place: string | number; expectsName: boolean };

type Look = { readonly faults: readonly InputFault[]; readonly hasEscapedName: boolean };

/** Walks the tokens of a text that is known to be JSON, without recursion. */
function look(text: string): Look {
  const faults: InputFault[] = [];
  const levels: Level[] = [];
  let hasEscapedName = false;
  const fault = (message: string, upTo = levels.length) => {
    const path = levels.slice(0, upTo).map(({ place }) => `/${pointerPart(String(place))}`);
    faults.push({ path: path.join(''), message });
  };
  for (let at = 0; at < text.length && faults.length < MAX_FAULTS; ) {
    const char = text.charAt(at);
    const level = levels.at(-1);
    if (char === '"') {
      const end = endOfString(text, at);
      const raw = text.slice(at, end);
      if (level?.expectsName === true && raw.includes('\\')) hasEscapedName = true;
      readString(raw, level, fault, levels.length);
      at = end;
    } else if (/[-\d]/.test(char)) {
      const end = endOfNumber(text, at);
      if (!isExactNumber(text.slice(at, end))) fault('A double cannot hold this number as written');
      at = end;
    } else {
      readMark(char, levels, level);
      at++;
    }
  }
  return { faults, hasEscapedName };
}

function readString(
  raw: string,
  level: Level | undefined,
  fault: (message: string, upTo?: number) => void,
  depth: number,
): void {
  const value: string = raw.includes('\\') ? JSON.parse(raw) : raw.slice(1, -1);
  const broken = hasLoneSurrogate(value);
  if (level?.names == null || !level.expectsName) {
    if (broken) fault('Holds a lone surrogate');
    return;
  }
  level.expectsName = false;
  level.place = value;
  // The name itself cannot stand in a pointer then: the object that holds it is named.
  if (broken) fault('A property name holds a lone surrogate', depth - 1);
  else if (level.names.has(value)) fault('Property occurs more than once');
  level.names.add(value);
}

function readMark(char: string, levels: Level[], level: Level | undefined): void {
  if (char === '{') levels.push({ names: new Set(), place: '', expectsName: true });
  else if (char === '[') levels.push({ names: null, place: 0, expectsName: false });
  else if (char === '}' || char === ']') levels.pop();
  else if (char === ',' && level !== undefined) {
    if (typeof level.place === 'number') level.place++;
    else level.expectsName = true;
  }
}

function endOfNumber(text: string, start: number): number {
  let end = start + 1;
  while (end < text.length && /[-+.\deE]/.test(text.charAt(end))) end++;
  return end;
}

/**
 * The value of a member as it was written, without blanks around it; null: there is none. `object`: the text of an
 * object that has passed `parseStrictJson`.
 */
export function memberText(object: string, name: string): string | null {
  let depth = 0;
  let [isName, found, start] = [false, false, 0];
  for (let at = 0; at < object.length; at++) {
    const char = object.charAt(at);
    if (char === '"') {
      const end = endOfString(object, at);
      if (isName) found = JSON.parse(object.slice(at, end)) === name;
      at = end - 1;
    } else if (depth === 1 && char === ':') {
      [isName, start] = [false, at + 1];
    } else if (depth === 1 && /[,}]/.test(char)) {
      if (found) return object.slice(start, at).trim();
      isName = true;
    } else if (/[{[]/.test(char)) {
      depth += 1;
      if (depth === 1) isName = true;
    } else if (/[}\]]/.test(char)) depth -= 1;
  }
  return null;
}
