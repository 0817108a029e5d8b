// Query parameters, strict: a whole number in plain digits, once, within its bounds; else 400, never clamped.
import type { Refused } from '#src/domain/refusal.ts';
import { type InputFault, invalidRequest, MAX_FAULTS, pointerPart } from './validation-error.ts';

export type IntegerParameter = {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly default: number;
  readonly description: string;
};

/** Parameters of other names are nobody's: they are passed over. */
export function readInteger(url: string, parameter: IntegerParameter): number | Refused<'invalid_request'> {
  const { name, min, max } = parameter;
  const given = new URLSearchParams(queryOf(url)).getAll(name);
  const [text] = given;
  if (text === undefined) return parameter.default;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : null;
  if (given.length === 1 && value !== null && value >= min && value <= max) return value;
  const fault: InputFault = { path: `/${name}`, message: `Expected one integer from ${min} to ${max}` };
  return invalidRequest([fault]);
}

/** Each of `names` once, in plain digits without a leading zero, and no other parameter. */
export function readCounts<const N extends readonly string[]>(
  url: string,
  names: N,
): { readonly [I in keyof N]: number } | Refused<'invalid_request'> {
  const query = new URLSearchParams(queryOf(url));
  const given = names.map((name) => query.getAll(name));
  const unknown = [...new Set(query.keys())].filter((name) => !names.includes(name)).slice(0, MAX_FAULTS);
  const faults: InputFault[] = unknown.map((name) => ({
    path: `/${pointerPart(name)}`,
    message: 'Unknown parameter',
  }));
  for (const [at, name] of names.entries()) {
    const [text = '', ...more] = given[at] ?? [];
    const isCount = more.length === 0 && /^(?:0|[1-9]\d{0,14})$/.test(text);
    if (!isCount) faults.push({ path: `/${name}`, message: 'Expected one whole number in plain digits' });
  }
  if (faults.length > 0) return invalidRequest(faults);
  return given.map(([text]) => Number(text)) as { readonly [I in keyof N]: number };
}

/** By the text alone: whether the host before it can be read is not asked here. */
const queryOf = (url: string) => /^[^?#]*\?([^#]*)/.exec(url)?.[1] ?? '';
