// What a relay signed beside its receipts (x402 extension offer-receipt): offers, and receipts of a payment. Only its
// own published keys count, and only under its own name: a key that a signature brings along proves nothing.
import {
  extractJWSHeader,
  isJWSSignedOffer,
  isJWSSignedReceipt,
  type OfferPayload,
  type ReceiptPayload,
  type SignedOffer,
  type SignedReceipt,
  verifyOfferSignatureJWS,
  verifyReceiptSignatureJWS,
} from '@x402/extensions/offer-receipt';
import { type KeyRecord, keyValidAt, toJwk } from '#src/domain/signing-keys/keys.ts';

export type SignedBy = {
  /** The relay's did:web. */
  readonly did: string;
  /** Its published keys. */
  readonly keys: readonly KeyRecord[];
};

export type Verified<P> =
  | { readonly payload: P; readonly keyUrl: string }
  /** For a person. */
  | { readonly problem: string };

export function verifiedOffer(
  offer: SignedOffer,
  by: SignedBy,
  nowMs: number,
): Promise<Verified<OfferPayload>> {
  return verified(isJWSSignedOffer(offer) ? offer : null, by, nowMs, verifyOfferSignatureJWS);
}

/** `issuedMs`: when the payment was delivered. */
export function verifiedPaymentReceipt(
  receipt: SignedReceipt,
  by: SignedBy,
  issuedMs: number,
): Promise<Verified<ReceiptPayload>> {
  return verified(isJWSSignedReceipt(receipt) ? receipt : null, by, issuedMs, verifyReceiptSignatureJWS);
}

async function verified<S extends { readonly signature: string }, P>(
  signed: S | null,
  { did, keys }: SignedBy,
  atMs: number,
  verify: (signed: S, key: ReturnType<typeof toJwk>) => Promise<P>,
): Promise<Verified<P>> {
  if (signed === null) return { problem: 'not signed as a JWS' };
  try {
    const { alg, kid = '' } = extractJWSHeader(signed.signature);
    const [name, keyId] = kid.split('#');
    if (name !== did || keyId === undefined) return { problem: `signed by ${kid || 'nobody named'}` };
    const key = keys.find((candidate) => candidate.keyId === keyId);
    if (key === undefined || !keyValidAt(key, Math.floor(atMs / 1000)))
      return { problem: `${kid} is no key of the relay at that time` };
    if (alg !== 'EdDSA') return { problem: `signed by ${alg}` };
    return { payload: await verify(signed, toJwk(key)), keyUrl: kid };
  } catch {
    return { problem: 'its signature is not good' };
  }
}
