// What is wrong with an input, place by place, as `details` of 400 lists it.
import { type Refused, refused } from '#src/domain/refusal.ts';

/** `path`: JSON pointer (RFC 6901) into the body, or `/name` of a query parameter. */
export type InputFault = { readonly path: string; readonly message: string };

export type InvalidRequest = Refused<'invalid_request'> & { readonly details: readonly InputFault[] };

/** Whoever looks for faults stops at so many. */
export const MAX_FAULTS = 32;

const MAX_PATH = 256;

/** One reference token, escaped (RFC 6901 §3). */
export function pointerPart(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** A caller's own long names are not sent back to it many times over. */
export function invalidRequest(faults: readonly InputFault[]): InvalidRequest {
  const details = faults.map(({ path, message }) => ({
    path: path.length > MAX_PATH ? `${path.slice(0, MAX_PATH).replace(/[\ud800-\udbff]$/, '')}…` : path,
    message,
  }));
  return { ...refused('invalid_request', 'The request does not match its schema: see details.'), details };
}
