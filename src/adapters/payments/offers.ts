// Signed offers and signed payment receipts (extension offer-receipt), by the key that also signs our own receipts.
// Their JWS have no `typ`, so neither can pass for one of those. Where they stand in an answer the package decides.
import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import {
  createJWS,
  createOfferReceiptExtension,
  type JWSSigner,
  OFFER_RECEIPT,
  type OfferReceiptIssuer,
} from '@x402/extensions/offer-receipt';
import { toBase64url } from '#src/domain/encoding.ts';
import { didKeyId } from '#src/domain/signing-keys/did.ts';
import type { Signer, SigningKey } from '#src/ports/signer.ts';
import type { Terms } from './terms.ts';

export type OfferKey = {
  readonly signer: Signer;
  /** did:web of this relay, whose document names the signer's keys. */
  readonly did: string;
};

export type PaidFacts = {
  readonly resourceUrl: string;
  readonly requirements: PaymentRequirements;
  readonly payer: string;
  readonly network: Terms['network'];
  readonly transaction: string | null;
  /** Unix ms: part of what is signed. */
  readonly issuedAtMs: number;
};

export type Offers = {
  /** For `extensions`: an offer for each of the requirements. `untilMs`: Unix ms. */
  offer(required: PaymentRequired, untilMs: number): Promise<Record<string, unknown>>;
  /**
   * For `extensions` of a settlement: that the service was delivered. The same facts give the same text, also when its
   * key has been rotated since; nothing where that key is no longer held: no other was valid then.
   */
  receipt(facts: PaidFacts): Promise<Record<string, unknown>>;
};

const VERSION = 1;
const seconds = (ms: number): number => Math.floor(ms / 1000);

export function signedOffers({ signer, did }: OfferKey): Offers {
  return {
    async offer(required, untilMs) {
      const extension = createOfferReceiptExtension(issuer(signer.current(), did, untilMs));
      const { accepts: requirements, resource: resourceInfo } = required;
      const context = { requirements, resourceInfo, paymentRequiredResponse: required };
      return member(await extension.enrichPaymentRequiredResponse?.({}, context));
    },
    async receipt({ resourceUrl, requirements, payer, network, transaction, issuedAtMs }) {
      const key = signer.former(issuedAtMs);
      if (key === null) return {};
      const extension = createOfferReceiptExtension(issuer(key, did, issuedAtMs));
      return member(
        await extension.enrichSettlementResponse?.(
          { includeTxHash: true },
          {
            paymentPayload: { x402Version: 2, accepted: requirements, payload: {} },
            requirements,
            declaredExtensions: {},
            phase: 'before-handler',
            result: { success: true, payer, network, transaction: transaction ?? '' },
            transportContext: { request: { adapter: { getUrl: () => resourceUrl } } },
          },
        ),
      );
    },
  };
}

const member = (value: unknown): Record<string, unknown> =>
  value === undefined ? {} : { [OFFER_RECEIPT]: value };

/** `atMs`: the end of an offer, or the time of a receipt. The package's own issuer reads the clock itself. */
function issuer(key: SigningKey, did: string, atMs: number): OfferReceiptIssuer {
  const keyUrl = didKeyId(did, key.keyId);
  const jws: JWSSigner = {
    kid: keyUrl,
    format: 'jws',
    algorithm: 'EdDSA',
    sign: async (bytes) => toBase64url(await key.sign(bytes)),
  };
  return {
    kid: keyUrl,
    format: 'jws',
    async issueOffer(resourceUrl, { acceptIndex, scheme, network, asset, payTo, amount }) {
      const terms = { scheme, network, asset, payTo, amount, validUntil: seconds(atMs) };
      const signature = await createJWS({ version: VERSION, resourceUrl, ...terms }, jws);
      return { format: 'jws', acceptIndex, signature };
    },
    async issueReceipt(resourceUrl, payer, network, transaction) {
      const paid = { network, resourceUrl, payer, issuedAt: seconds(atMs) };
      const named = transaction === undefined ? {} : { transaction };
      return { format: 'jws', signature: await createJWS({ version: VERSION, ...paid, ...named }, jws) };
    },
  };
}
