// Salted commitments: the receipt binds to a value without showing it; the payer can disclose it to anyone, who needs only
// the receipt and the disclosure. Form as in SD-JWT (RFC 9901):
// digest = base64url(SHA-256(base64url(JSON [salt, name, value]))).
import { fromBase64url, fromUtf8, sha256, toBase64url, utf8 } from '#src/domain/encoding.ts';
import { parsedJson } from '../canonical-json.ts';
import type { ReceiptPayload } from './payload.ts';

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

export type OpenedDisclosure =
  | { readonly ok: true; readonly name: string; readonly value: string | readonly string[] }
  | {
      readonly ok: false;
      /** The name that the text states; null if it cannot be read. */
      readonly name: string | null;
      readonly problem: DisclosureProblem;
    };

/**
 * `malformed`: not base64url(JSON [salt, name, value]). `not_committed`: the receipt does not contain its hash: the value
 * was changed, or is of another receipt. `misplaced`: the receipt contains its hash, but not where this name belongs.
 * `repeated`: its name was opened before; a receipt with two commitments of one name could show each reader another value.
 */
export type DisclosureProblem = 'malformed' | 'not_committed' | 'misplaced' | 'repeated';

/** One result per text, in order. `texts`: as in `disclosures` of an execution response. */
export function openDisclosures(
  payload: ReceiptPayload,
  texts: readonly string[],
): readonly OpenedDisclosure[] {
  const names = new Set<string>();
  const opened: OpenedDisclosure[] = [];
  for (const text of texts) {
    const disclosure = openOne(payload, text);
    opened.push(
      disclosure.ok && names.has(disclosure.name)
        ? { ok: false, name: disclosure.name, problem: 'repeated' }
        : disclosure,
    );
    if (disclosure.ok) names.add(disclosure.name);
  }
  return opened;
}

function openOne(payload: ReceiptPayload, text: string): OpenedDisclosure {
  const read = readDisclosure(text);
  if (read === null) return { ok: false, name: null, problem: 'malformed' };
  const { name, value } = read;
  const commitment = toBase64url(sha256(utf8(text)));
  if (listFor(payload, name)?.includes(commitment)) return { ok: true, name, value };
  const anywhere = [payload.request, payload.outcome, ...payload.attempts].some(({ _sd }) =>
    _sd.includes(commitment),
  );
  return { ok: false, name, problem: anywhere ? 'misplaced' : 'not_committed' };
}

const REQUEST_NAMES = [
  'target_url',
  'target_origin',
  'header_names',
  'request_body_sha256',
  'idempotency_key',
];

/** The list that contains commitments of this name; null if the receipt has no such list. */
function listFor({ request, outcome, attempts }: ReceiptPayload, name: string): readonly string[] | null {
  if (REQUEST_NAMES.includes(name)) return request._sd;
  if (name === 'response_body_sha256') return outcome._sd;
  const [, number] = /^attempt_([1-9]\d*)_(?:leaf_sha256|address)$/.exec(name) ?? [];
  return attempts.find(({ n }) => String(n) === number)?._sd ?? null;
}

type Read = { readonly name: string; readonly value: string | readonly string[] };

function readDisclosure(text: string): Read | null {
  const bytes = fromBase64url(text);
  const json = bytes === null ? null : fromUtf8(bytes);
  if (json === null) return null;
  const parts = parsedJson(json);
  if (!Array.isArray(parts) || parts.length !== 3) return null;
  const [salt, name, value]: readonly unknown[] = parts;
  if (typeof salt !== 'string' || fromBase64url(salt)?.length !== 16 || typeof name !== 'string') return null;
  if (typeof value === 'string') return { name, value };
  return Array.isArray(value) && value.every((one) => typeof one === 'string') ? { name, value } : null;
}
