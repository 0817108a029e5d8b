// Hashes that identify a decision's parts without disclosing them: the action by a keyed hash, the rest by plain ones.
// Hashes are lower-case hex of 32 bytes.
import { sha256, toHex, utf8 } from '#src/domain/encoding.ts';
import type { NormalRequest } from '#src/domain/job/webhook-request.ts';
import { canonicalJson, type JsonObject } from '../canonical-json.ts';
import type { BuyerPolicy } from './buyer-policy.ts';

/** HMAC under the secret that never leaves; labels keep its uses apart. */
type KeyedHash = { mac(label: string, text: string): Uint8Array };

/** Every field of the action counts. Keyed, so that no log is an oracle for guessing URLs, headers and bodies. */
export function actionHash({ body, ...rest }: NormalRequest, keyed: KeyedHash): string {
  return toHex(keyed.mac('action', canonicalJson({ ...rest, ...(body === undefined ? {} : { body }) })));
}

/** SHA-256 of JCS (RFC 8785). */
export const policyHash = (policy: BuyerPolicy): string => jcsHash({ ...policy });

/** SHA-256 of JCS of DecisionRecorded's data as recorded: what a receipt names its decision by. */
export const decisionHash = (recorded: JsonObject): string => jcsHash(recorded);

const jcsHash = (value: JsonObject) => toHex(sha256(utf8(canonicalJson(value))));
