// The request header Idempotency-Key (draft-ietf-httpapi-idempotency-key-header), as text or as the string of a structured
// field.
import { LIMITS } from '#src/domain/limits.ts';
import { ALLOWED, type Allowed, type Refused } from '#src/domain/refusal.ts';
import { invalidRequest } from './validation.ts';

const NAME = 'Idempotency-Key';
const { min, max } = LIMITS.idempotencyKeyLength;

/**
 * The key of a call: the body's, or the header's if the body has none. undefined: neither has one. `place`: JSON pointer of
 * the body's key.
 */
export function idempotencyKeyOf(
  headers: Headers,
  inBody: string | undefined,
  place: string,
): string | undefined | Refused<'invalid_request'> {
  const text = headers.get(NAME)?.trim() ?? '';
  if (text === '') return inBody;
  const key = unquoted(text);
  if (key.length < min || key.length > max || !/^[\x20-\x7e]+$/.test(key))
    return invalidRequest([
      { path: '', message: `Expected ${min} to ${max} ASCII characters in the header ${NAME}` },
    ]);
  if (inBody !== undefined && inBody !== key)
    return invalidRequest([{ path: place, message: `Expected the same key as in the header ${NAME}` }]);
  return key;
}

/** Of a run of a schedule its payment is the key: a header that would be ignored is refused. */
export function refuseKey(headers: Headers): Allowed | Refused<'invalid_request'> {
  if ((headers.get(NAME)?.trim() ?? '') === '') return ALLOWED;
  const message = `Leave out the header ${NAME}: a run is known by its payment, repeat with the same payment header`;
  return invalidRequest([{ path: '', message }]);
}

function unquoted(text: string): string {
  const [, inner] = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text) ?? [];
  return inner === undefined ? text : inner.replace(/\\(["\\])/g, '$1');
}
