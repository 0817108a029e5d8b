import { canonicalJson, type JsonObject } from '../canonical-json.ts';
import { sha256, toHex, utf8 } from '../encoding.ts';

/** The hash by which receipts name a signed authorization: SHA-256 of its JCS, lower-case hex. Both are in lower case. */
export const payloadHash = (signed: {
  readonly authorization: JsonObject;
  readonly signature: string;
}): string => {
  const { authorization, signature } = signed;
  return toHex(sha256(utf8(canonicalJson({ authorization, signature }))));
};
