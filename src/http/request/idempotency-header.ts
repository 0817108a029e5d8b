// The request header Idempotency-Key (draft-ietf-httpapi-idempotency-key-header), as text or as the string of a structured
// field.
import { LIMITS } from '#src/domain/limits.ts';
import { ALLOWED, type Allowed, isRefused } from '#src/domain/refusal.ts';
import { type InvalidRequest, invalidRequest } from './validation.ts';

const NAME = 'Idempotency-Key';
const { min, max } = LIMITS.idempotencyKeyLength;

type Keyed = { readonly idempotencyKey?: string };

/** With the key of the header if it has none of its own. `place`: JSON pointer of `keyed` in the body. */
export function withHeaderKey<K extends Keyed>(keyed: K, headers: Headers, place = ''): K | InvalidRequest {
  const malformed = judgeKey(headers);
  if (isRefused(malformed)) return malformed;
  const key = keyIn(headers);
  if (key === null) return keyed;
  if (keyed.idempotencyKey !== undefined && keyed.idempotencyKey !== key) {
    const path = `${place}/idempotencyKey`;
    return invalidRequest([{ path, message: `Expected the same key as in the header ${NAME}` }]);
  }
  return { ...keyed, idempotencyKey: key };
}

/** Whether the header, if there is one, has a key. */
export function judgeKey(headers: Headers): Allowed | InvalidRequest {
  const key = keyIn(headers);
  if (key === null || (key.length >= min && key.length <= max && /^[\x20-\x7e]+$/.test(key))) return ALLOWED;
  return invalidRequest([
    { path: '', message: `Expected ${min} to ${max} ASCII characters in the header ${NAME}` },
  ]);
}

/** Of a run of a schedule its payment is the key: a header that would be ignored is refused. */
export function refuseKey(headers: Headers): Allowed | InvalidRequest {
  if (keyIn(headers) === null) return ALLOWED;
  const message = `Leave out the header ${NAME}: a run is known by its payment, repeat with the same payment header`;
  return invalidRequest([{ path: '', message }]);
}

/** null: there is none. */
function keyIn(headers: Headers): string | null {
  const text = headers.get(NAME)?.trim() ?? '';
  if (text === '') return null;
  const [, inner] = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text) ?? [];
  return inner === undefined ? text : inner.replace(/\\(["\\])/g, '$1');
}
