// What is wrong with an input, place by place, as `details` of 400 lists it.
import { type RefusalCode, type Refused, refused } from '#src/domain/refusal.ts';

/** `path`: JSON pointer (RFC 6901) into the body, or `/name` of a query parameter. */
export type InputFault = { readonly path: string; readonly message: string };

export type Invalid<C extends RefusalCode> = Refused<C> & { readonly details: readonly InputFault[] };
export type InvalidRequest = Invalid<'invalid_request'>;

/** Whoever looks for faults stops at so many. */
export const MAX_FAULTS = 32;

const MAX_PATH = 256;

/** One reference token, escaped (RFC 6901 §3). */
export function pointerPart(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

export const invalidRequest = (faults: readonly InputFault[]): InvalidRequest =>
  invalid('invalid_request', 'The request does not match its schema: see details.', faults);

/** A caller's own long names are not sent back to it many times over. `place`: of what the faults are in. */
export function invalid<C extends RefusalCode>(
  code: C,
  message: string,
  faults: readonly InputFault[],
  place = '',
): Invalid<C> {
  const details = faults.map((fault) => ({
    path: shortened(place + fault.path),
    message: fault.message,
  }));
  return { ...refused(code, message), details };
}

function shortened(path: string): string {
  return path.length > MAX_PATH ? `${path.slice(0, MAX_PATH).replace(/[\ud800-\udbff]$/, '')}…` : path;
}
