// Query parameters, strict: a whole number in plain digits, once, within its bounds; else 400, never clamped.
import type { Refused } from '#src/domain/refusal.ts';
import { type InputFault, invalidRequest } from './input-fault.ts';

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

/** By the text alone: whether the host before it can be read is not asked here. */
const queryOf = (url: string) => /^[^?#]*\?([^#]*)/.exec(url)?.[1] ?? '';
