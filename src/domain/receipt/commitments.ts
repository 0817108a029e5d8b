// Salted commitments: the receipt binds to a value without showing it; the payer can disclose it to anyone.
// Form as in SD-JWT (RFC 9901): digest = base64url(SHA-256(base64url(JSON [salt, name, value]))).
import { sha256, toBase64url, utf8 } from '#src/domain/encoding.ts';

/** The fixed names; hashes are lower-case hex of the bytes on the wire, `header_names` a sorted array. */
export type CommitmentName =
  | 'target_url'
  | 'target_origin'
  | 'header_names'
  | 'request_body_sha256'
  | 'idempotency_key'
  | 'response_body_sha256'
  | `attempt_${number}_leaf_sha256`
  | `attempt_${number}_address`;

export type Disclosure = {
  /** base64url(JSON [salt, name, value]): what the payer gets. */
  readonly text: string;
  /** base64url(SHA-256(ASCII of `text`)): what the receipt contains. */
  readonly commitment: string;
};

/**
 * `salt`: 128 bits derived from the HMAC secret, the job's id and the name. It is not stored: a replay contains the request
 * again, so its commitments can be opened again. The job's id is used because JobStarted already contains the commitments,
 * and the receipt's id is drawn at signing.
 */
export function disclose(
  salt: Uint8Array,
  name: CommitmentName,
  value: string | readonly string[],
): Disclosure {
  if (salt.length !== 16) throw new RangeError('a salt has 128 bits');
  const text = toBase64url(utf8(JSON.stringify([toBase64url(salt), name, value])));
  return { text, commitment: toBase64url(sha256(utf8(text))) };
}
