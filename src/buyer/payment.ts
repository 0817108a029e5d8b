// The one payment of a purchase: an EIP-3009 authorization, signed by the buyer's wallet and checked before it is sent.

import { type Static, Type } from '@sinclair/typebox';
import type { PaymentPayload } from '@x402/core/types';
import { x402Client, x402HTTPClient } from '@x402/fetch';
import { toHex } from '#src/domain/encoding.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { payloadHash } from '#src/domain/payment/payload-hash.ts';
import { shapeCheck } from '#src/domain/shape-check.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import type { Clock } from '#src/ports/clock.ts';
import { OfferTerms, type ToSign } from './offer.ts';

const Address = Type.String({ pattern: '^0x[0-9a-f]{40}$' });
const Decimal = Type.String({ pattern: '^(0|[1-9]\\d{0,77})$' });

/** What is signed, hexadecimal in lower case. It charges at most once: the chain accepts a nonce of a payer once. */
export const SignedAuthorization = Type.Object({
  from: Address,
  to: Address,
  value: Decimal,
  validAfter: Decimal,
  validBefore: Decimal,
  nonce: Type.String({ pattern: '^0x[0-9a-f]{64}$' }),
});
export type SignedAuthorization = Static<typeof SignedAuthorization>;

const isSigned = shapeCheck(
  Type.Object({ authorization: SignedAuthorization, signature: Type.String({ pattern: '^0x[0-9a-f]+$' }) }),
);

/** A payment without its signature: enough for the wallet to sign the same one again. */
export const UnsignedPayment = Type.Object({
  terms: OfferTerms,
  authorization: SignedAuthorization,
  /** SHA-256 of the signed authorization, hex; receipts contain it. */
  payloadHash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
});
export type UnsignedPayment = Static<typeof UnsignedPayment>;

export type BuyerPayment = {
  readonly terms: OfferTerms;
  readonly authorization: SignedAuthorization;
  readonly payloadHash: string;
  /** Carries the signature. It is charged once; presented again, it returns the recorded answer. */
  readonly header: { readonly name: string; readonly value: string };
};

export type BuyerWallet = {
  /** Lower case; null: only the wallet has it, and a payment from any of its accounts is its own. */
  readonly address: string | null;
  /** A payment of the only requirement: a new one, or the recorded authorization signed again. */
  pay(required: ToSign, recorded: SignedAuthorization | null): Promise<PaymentPayload>;
};

/** Whatever a 402 asks for, an authorization of a call lives no longer. */
const LONGEST_SECONDS = LIMITS.authorizationSeconds.max;

/** Throws if the wallet signs anything but the requirement. */
export async function newPayment(
  payer: BuyerWallet,
  required: ToSign,
  clock: Pick<Clock, 'now'>,
): Promise<BuyerPayment> {
  const [terms] = required.accepts;
  const maxTimeoutSeconds = Math.min(terms.maxTimeoutSeconds, LONGEST_SECONDS);
  const payload = await payer.pay({ ...required, accepts: [{ ...terms, maxTimeoutSeconds }] }, null);
  const payment = paymentOf(terms, payload);
  const { from, to, value, validBefore } = payment.authorization;
  const agreed =
    (payer.address === null || from === payer.address) &&
    to === terms.payTo.toLowerCase() &&
    value === terms.amount &&
    Number(validBefore) <= Math.ceil(clock.now() / 1000) + maxTimeoutSeconds;
  if (!agreed)
    throw new Error('the wallet signed another authorization than the relay asks for: it is not sent');
  return payment;
}

/** A payment that can be charged in this window only: Unix seconds. The wallet has an address. */
export async function windowPayment(
  payer: BuyerWallet,
  required: ToSign,
  { validAfter, validBefore }: { readonly validAfter: number; readonly validBefore: number },
): Promise<BuyerPayment> {
  const [terms] = required.accepts;
  const authorization: SignedAuthorization = {
    from: payer.address ?? '',
    to: terms.payTo.toLowerCase(),
    value: terms.amount,
    validAfter: String(validAfter),
    validBefore: String(validBefore),
    nonce: `0x${toHex(crypto.getRandomValues(new Uint8Array(32)))}`,
  };
  return paymentOf(terms, await payer.pay(required, authorization));
}

/**
 * The recorded payment, signed again: the same authorization, so that it cannot be charged a second time. Throws if the
 * record was changed: the hash covers the signature, which is the same for the same authorization.
 */
export async function samePayment(
  payer: BuyerWallet,
  required: ToSign,
  recorded: UnsignedPayment,
): Promise<BuyerPayment> {
  const payment = paymentOf(recorded.terms, await payer.pay(required, recorded.authorization));
  if (payment.payloadHash === recorded.payloadHash) return payment;
  throw new OperatorError(
    'the recorded payment of this order is none that this wallet has signed, and nothing is sent: restore the ledger from a backup',
  );
}

function paymentOf(accepted: OfferTerms, made: PaymentPayload): BuyerPayment {
  const payload: PaymentPayload = { ...made, accepted };
  const signed = lowerCase(made.payload);
  const http = new x402HTTPClient(new x402Client());
  const [header] = Object.entries(http.encodePaymentSignatureHeader(payload));
  if (!isSigned(signed) || header === undefined)
    throw new Error('the wallet made no signed authorization (EIP-3009)');
  const [name, value] = header;
  const { authorization } = signed;
  return { terms: accepted, authorization, payloadHash: payloadHash(signed), header: { name, value } };
}

/** Every text within: one authorization has one spelling. */
const lowerCase = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_name, one) => (typeof one === 'string' ? one.toLowerCase() : one));
