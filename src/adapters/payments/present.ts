// A payment as a request presents it: decoded, of our network and asset, its signer found. No network call.
// Whether it pays what we ask now is judged in x402-judge-new.ts, for new payments only.
import { PaymentPayloadV1Schema, PaymentPayloadV2Schema } from '@x402/core/schemas';
import { fromUtf8 } from '#src/domain/encoding.ts';
import { type Refused, refused } from '#src/domain/refusal.ts';
import type { ReadHeader } from '#src/ports/payment-protocol.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import {
  identityOf,
  isKeySignature,
  payloadHashOf,
  recoverSigner,
  type Signed,
  SignedForm,
} from './authorization.ts';
import type { Terms } from './terms.ts';

export const PAYMENT_HEADERS = { v2: 'PAYMENT-SIGNATURE', v1: 'X-PAYMENT' } as const;
const HEADER_MAX_CHARS = 16 * 1024;

/** What verify and settle need beside the facts. `resourceUrl`: what the payer says it pays for; not signed. */
export type Carried = { readonly signed: Signed; readonly resourceUrl: string | null };

type Refusal = Refused<'payment_required'>;
type Presented = {
  readonly x402Version: 1 | 2;
  readonly carried: Carried;
};

export function isPresented(header: ReadHeader): boolean {
  return header(PAYMENT_HEADERS.v2) !== null || header(PAYMENT_HEADERS.v1) !== null;
}

/**
 * Refuses what cannot be a payment of this relay, known or new. Another network or asset is another domain of signatures,
 * so a payment that was accepted before X402_NETWORK or X402_ASSET changed is refused too. Version 2 goes first where a
 * request has both. Never throws.
 */
export async function readPayment(terms: Terms, header: ReadHeader): Promise<PresentedPayment | Refusal> {
  const v2 = header(PAYMENT_HEADERS.v2);
  const text = v2 ?? header(PAYMENT_HEADERS.v1);
  if (text === null) return no('payment_required', 'this call is paid: no payment header came with it');
  const decoded = decode(text);
  if (decoded === null) return no('invalid_payment_header', 'the payment header is no base64 of JSON');
  const presented = v2 === null ? readV1(terms, decoded.value) : readV2(terms, decoded.value);
  if ('refused' in presented) return presented;
  return findSigner(terms, presented);
}

export const carriedOf = (payment: PresentedPayment): Carried => payment.carried as Carried;

export const no = (reason: string, message: string): Refusal =>
  refused('payment_required', message, { details: { reason } });

/** Base64 as the stock clients write it, with or without padding; the URL alphabet does no harm. */
function decode(text: string): { readonly value: unknown } | null {
  const trimmed = text.trim();
  if (trimmed.length > HEADER_MAX_CHARS || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(trimmed)) return null;
  const json = fromUtf8(Buffer.from(trimmed, 'base64'));
  if (json === null) return null;
  try {
    return { value: JSON.parse(json) };
  } catch {
    return null;
  }
}

function readV2(terms: Terms, value: unknown): Presented | Refusal {
  const form = PaymentPayloadV2Schema.safeParse(value);
  if (!form.success) return no('invalid_payment_header', 'the payment header is no x402 version 2 payment');
  const { accepted, payload, resource } = form.data;
  const { requirements } = terms;
  if (accepted.scheme !== requirements.scheme) return no('unsupported_scheme', 'the scheme must be "exact"');
  if (accepted.network !== terms.network) return no('network_mismatch', `the network is ${terms.network}`);
  if (accepted.asset.toLowerCase() !== terms.asset) {
    return no('asset_mismatch', `the asset is ${requirements.asset}`);
  }
  const signed = readSigned(payload);
  if ('refused' in signed) return signed;
  const { authorization } = signed;
  if (accepted.payTo.toLowerCase() !== authorization.to) {
    return no('recipient_mismatch', 'the authorization pays another recipient than was accepted');
  }
  if (accepted.amount !== authorization.value) {
    return no('amount_mismatch', 'the authorization is of another amount than was accepted');
  }
  return { x402Version: 2, carried: { signed, resourceUrl: resource?.url ?? null } };
}

function readV1(terms: Terms, value: unknown): Presented | Refusal {
  const form = PaymentPayloadV1Schema.safeParse(value);
  if (!form.success) return no('invalid_payment_header', 'the payment header is no x402 version 1 payment');
  const { scheme, network, payload } = form.data;
  if (scheme !== terms.requirements.scheme) return no('unsupported_scheme', 'the scheme must be "exact"');
  if (network !== terms.networkV1) {
    return no('network_mismatch', `the network is ${terms.networkV1 ?? `${terms.network}, version 2 only`}`);
  }
  const signed = readSigned(payload);
  if ('refused' in signed) return signed;
  return { x402Version: 1, carried: { signed, resourceUrl: null } };
}

function readSigned(payload: Record<string, unknown>): Signed | Refusal {
  if ('permit2Authorization' in payload) {
    return no('unsupported_payload_type', 'only transfers with authorization (EIP-3009) are taken');
  }
  const form = SignedForm.safeParse(payload);
  if (!form.success) return no('invalid_payload', 'the payload is no signed authorization (EIP-3009)');
  return form.data;
}

async function findSigner(
  terms: Terms,
  { x402Version, carried }: Presented,
): Promise<PresentedPayment | Refusal> {
  const { signed } = carried;
  const { authorization, signature } = signed;
  const byKey = isKeySignature(signature);
  if (byKey && (await recoverSigner(terms, signed)) !== authorization.from) {
    return no('invalid_signature', 'the signature is not by the key of the authorization’s sender');
  }
  return {
    hash: identityOf(terms, authorization),
    scheme: terms.requirements.scheme,
    network: terms.network,
    asset: terms.asset,
    amount: authorization.value,
    payTo: authorization.to,
    payer: authorization.from,
    signer: byKey ? 'recovered' : 'contract',
    nonce: authorization.nonce,
    validBefore: authorization.validBefore,
    payloadHash: payloadHashOf(signed),
    x402Version,
    carried,
  };
}
