// Reads a payment header: decodes it, checks network and asset, normalises the EIP-3009 authorization and recovers its
// signer. The one network call that may be made is the node's, about a payer whose key did not sign.
import { createHash } from 'node:crypto';
import { PaymentPayloadV1Schema, PaymentPayloadV2Schema, z } from '@x402/core/schemas';
import { recover } from 'tiny-secp256k1';
import { keccak256 } from 'viem';
import { parsedJson } from '#src/domain/canonical-json.ts';
import { fromUtf8 } from '#src/domain/encoding.ts';
import { identityText } from '#src/domain/events/payment.ts';
import { payloadHash } from '#src/domain/payment/payload-hash.ts';
import { ALLOWED, type Allowed, isRefused, type Refused } from '#src/domain/refusal.ts';
import type { ReadHeader } from '#src/ports/payment-protocol.ts';
import type { Payments, PresentedPayment } from '#src/ports/payments.ts';
import { readIdentifier } from './payment-identifier.ts';
import { type Hex, lowerHex, type Terms } from './requirements.ts';
import { refuse, validateRunWindow, validateTimeWindow } from './time-window.ts';
import type { HasCode } from './wallet-code.ts';

const PAYMENT_HEADERS = { v2: 'PAYMENT-SIGNATURE', v1: 'X-PAYMENT' } as const;
const HEADER_MAX_CHARS = 16 * 1024;
/** Longer than the signature of any contract wallet, ERC-6492 wrapping included. */
const SIGNATURE_MAX_BYTES = 4096;

const hex = (form: RegExp) => z.string().regex(form).transform(lowerHex);
const Address = hex(/^0x[0-9a-f]{40}$/i);
const Decimal = z.string().regex(/^(0|[1-9]\d{0,77})$/);

/**
 * Lower case; numbers decimal, without sign or leading zero: one authorization has one spelling. Unknown members are
 * dropped: the request to the facilitator is rebuilt from these.
 */
const SignedForm = z.object({
  authorization: z.object({
    from: Address,
    to: Address,
    value: Decimal,
    validAfter: Decimal,
    validBefore: Decimal,
    nonce: hex(/^0x[0-9a-f]{64}$/i),
  }),
  signature: z
    .string()
    .max(2 + 2 * SIGNATURE_MAX_BYTES)
    .regex(/^0x([0-9a-f]{2})+$/i)
    .transform(lowerHex),
});
type Signed = z.infer<typeof SignedForm>;

/** Input of verify and settle. `resourceUrl`: the resource that the payer names; it is not signed. */
type Carried = { readonly signed: Signed; readonly resourceUrl: string | null };

export const carriedOf = (payment: PresentedPayment): Carried => payment.carried as Carried;

type Refusal = Refused<'payment_required'>;
type Unreadable = Refusal | Refused<'invalid_request'>;
type Decoded = { readonly x402Version: 1 | 2; readonly identifier: string | null; readonly carried: Carried };

export function isPresented(header: ReadHeader): boolean {
  return header(PAYMENT_HEADERS.v2) !== null || header(PAYMENT_HEADERS.v1) !== null;
}

const WrittenForm = z.object({
  network: z.string(),
  asset: z.string(),
  x402Version: z.union([z.literal(1), z.literal(2)]),
  resourceUrl: z.string().nullable(),
  signed: SignedForm,
});

/** What has to be kept of a payment to settle it later. */
export function writePayment(payment: PresentedPayment): string {
  const { network, asset, x402Version } = payment;
  const written: z.infer<typeof WrittenForm> = { network, asset, x402Version, ...carriedOf(payment) };
  return JSON.stringify(written);
}

/** Reads what `writePayment` has returned. */
export async function reopenPayment(deps: ReadDeps, text: string): Promise<PresentedPayment | Unreadable> {
  const form = WrittenForm.safeParse(parsedJson(text));
  if (!form.success) return refuse('invalid_payload', 'it is no payment as it is kept');
  const { network, asset, x402Version, signed, resourceUrl } = form.data;
  if (network !== deps.terms.network)
    return refuse('network_mismatch', `the network is ${deps.terms.network}`);
  if (asset !== deps.terms.asset) return refuse('asset_mismatch', `the asset is ${deps.terms.asset}`);
  return presentedBy(deps, { x402Version, identifier: null, carried: { signed, resourceUrl } });
}

/**
 * Refuses what cannot be a payment to this relay, known or new. A payment that was accepted before X402_NETWORK or
 * X402_ASSET changed is refused too, because its signature has another EIP-712 domain. Version 2 takes precedence if a
 * request has both headers. A signature that is not by the key of the payer's address can be valid if the address is a
 * contract: the facilitator decides, also if this cannot be found out. Never throws.
 */
export async function readPayment(
  deps: ReadDeps,
  header: ReadHeader,
): Promise<PresentedPayment | Unreadable> {
  const v2 = header(PAYMENT_HEADERS.v2);
  const text = v2 ?? header(PAYMENT_HEADERS.v1);
  if (text === null)
    return refuse('payment_required', 'this call is paid: the request has no payment header');
  const parsed = parseHeader(text);
  if (isRefused(parsed)) return parsed;
  const decoded = readForm(deps.terms, v2 === null ? 1 : 2, parsed.json);
  return isRefused(decoded) ? decoded : presentedBy(deps, decoded);
}

/** `client`: who presents it, see `HasCode`. */
type ReadDeps = { readonly terms: Terms; readonly hasCode: HasCode; readonly client: string };

async function presentedBy(
  { terms, hasCode, client }: ReadDeps,
  { carried, identifier, x402Version }: Decoded,
): Promise<PresentedPayment | Unreadable> {
  const { authorization } = carried.signed;
  const byKey = withUsualV(carried.signed);
  const isByKey = byKey !== null && recoverSigner(terms, byKey) === authorization.from;
  if (!isByKey && byKey !== null && (await hasCode(authorization.from, client)) === false) {
    return refuse('invalid_signature', 'the signature is not by the key of the authorization’s sender');
  }
  const signed = isByKey ? byKey : carried.signed;
  const { network, asset } = terms;
  const { from: payer, nonce } = authorization;
  return {
    hash: sha256Hex(identityText({ network, asset, payer, nonce })),
    scheme: terms.requirements.scheme,
    network,
    asset,
    amount: authorization.value,
    payTo: authorization.to,
    payer,
    signer: isByKey ? 'recovered' : 'contract',
    nonce,
    validBefore: authorization.validBefore,
    payloadHash: payloadHash({ authorization, signature: signed.signature }),
    x402Version,
    identifier,
    carried: { ...carried, signed },
  };
}

/** The JSON value; accepts standard base64 and base64url, with or without padding. */
function parseHeader(text: string): { readonly json: unknown } | Refusal {
  const trimmed = text.trim();
  if (trimmed.length > HEADER_MAX_CHARS)
    return refuse(
      'payment_header_too_long',
      `the payment header is longer than ${HEADER_MAX_CHARS} characters`,
    );
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(trimmed))
    return refuse('payment_header_not_base64', 'the payment header is not base64');
  const json = parsedJson(fromUtf8(Buffer.from(trimmed, 'base64')) ?? '');
  return json === undefined
    ? refuse('payment_header_not_json', 'the payment header is base64, but not of JSON')
    : { json };
}

function readForm(terms: Terms, x402Version: 1 | 2, value: unknown): Decoded | Unreadable {
  const form =
    x402Version === 2 ? PaymentPayloadV2Schema.safeParse(value) : PaymentPayloadV1Schema.safeParse(value);
  if (!form.success)
    return refuse(
      'invalid_payment_header',
      `the payment header is not an x402 version ${x402Version} payment`,
    );
  const { requirements } = terms;
  const accepted = 'accepted' in form.data ? form.data.accepted : null;
  const { scheme, network } = 'accepted' in form.data ? form.data.accepted : form.data;
  if (scheme !== requirements.scheme) return refuse('unsupported_scheme', 'the scheme must be "exact"');
  const ours = accepted === null ? terms.networkV1 : terms.network;
  if (network !== ours)
    return refuse('network_mismatch', `the network is ${ours ?? `${terms.network}, version 2 only`}`);
  if (accepted !== null && accepted.asset.toLowerCase() !== terms.asset)
    return refuse('asset_mismatch', `the asset is ${requirements.asset}`);
  const signed = readSigned(form.data.payload);
  if (isRefused(signed)) return signed;
  const { to, value: amount } = signed.authorization;
  if (accepted !== null && accepted.payTo.toLowerCase() !== to)
    return refuse('recipient_mismatch', 'the recipient of the authorization is not the accepted one');
  if (accepted !== null && accepted.amount !== amount)
    return refuse('amount_mismatch', 'the amount of the authorization is not the accepted one');
  const resourceUrl = 'resource' in form.data ? (form.data.resource?.url ?? null) : null;
  const identifier = 'extensions' in form.data ? readIdentifier(form.data.extensions ?? {}) : null;
  if (typeof identifier === 'object' && identifier !== null) return identifier;
  return { x402Version, identifier, carried: { signed, resourceUrl } };
}

function readSigned(payload: Record<string, unknown>): Signed | Refusal {
  if ('permit2Authorization' in payload) {
    return refuse('unsupported_payload_type', 'only transfers with authorization (EIP-3009) are accepted');
  }
  const form = SignedForm.safeParse(payload);
  if (!form.success) return refuse('invalid_payload', 'the payload is not a signed authorization (EIP-3009)');
  return form.data;
}

/**
 * As a signature of a private key: 65 bytes, with the recovery id that the asset's contract accepts (27 or 28), which some
 * wallets write as 0 or 1. null: of another length, which only a contract wallet can verify.
 */
function withUsualV(signed: Signed): Signed | null {
  const { signature } = signed;
  if (signature.length !== 2 + 2 * 65) return null;
  const v = { '00': '1b', '01': '1c' }[signature.slice(-2)];
  return v === undefined ? signed : { ...signed, signature: `${signature.slice(0, -2) as Hex}${v}` };
}

/** Half of secp256k1's order. The asset rejects a larger s (EIP-2), because each signature has a second form with one. */
const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

/** The address of the key that signed for our asset; null if there is none. libsecp256k1 is twice as fast as JavaScript. */
function recoverSigner(terms: Terms, { authorization, signature }: Signed): Hex | null {
  const digest = transferDigest(terms, authorization);
  const s = BigInt(`0x${signature.slice(66, 130)}`);
  const recoveryId = { '1b': 0, '1c': 1 }[signature.slice(130)];
  if (digest === null || s > HALF_ORDER || (recoveryId !== 0 && recoveryId !== 1)) return null;
  try {
    const publicKey = recover(bytesOf(digest), bytesOf(signature.slice(0, 130)), recoveryId, false);
    return publicKey && `0x${keccak256(publicKey.slice(1)).slice(-40)}`;
  } catch {
    // r or s is not below the order, or no point of the curve has this r as its x.
    return null;
  }
}

const TRANSFER_TYPE = keccak256(
  Buffer.from(
    'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
  ),
).slice(2);

/** The digest that is signed (EIP-712); null if a number has more than 256 bits. */
export function transferDigest({ domainSeparator }: Terms, message: Signed['authorization']): Hex | null {
  const { from, to, value, validAfter, validBefore, nonce } = message;
  const numbers = [value, validAfter, validBefore].map((decimal) => BigInt(decimal).toString(16));
  if (numbers.some((number) => number.length > 64)) return null;
  const words = [from.slice(2), to.slice(2), ...numbers, nonce.slice(2)].map((word) =>
    word.padStart(64, '0'),
  );
  const struct = keccak256(bytesOf(`0x${TRANSFER_TYPE}${words.join('')}`));
  return keccak256(bytesOf(`0x1901${domainSeparator.slice(2)}${struct.slice(2)}`));
}

const bytesOf = (text: string): Uint8Array => Buffer.from(text.slice(2), 'hex');

const sha256Hex = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

const timesOf = (payment: PresentedPayment) => carriedOf(payment).signed.authorization;

/** Validates a new payment: payee and amount as configured, time window valid now. */
export function termsValidators(
  terms: Terms,
): Pick<Payments, 'validateTerms' | 'validateNew' | 'validateTicket'> {
  const validateTerms = ({ payer, payTo, amount }: PresentedPayment): Allowed | Refusal => {
    if (payTo !== terms.payTo) {
      return refuse('recipient_mismatch', `the authorization must pay ${terms.requirements.payTo}`);
    }
    // No money would come in: the comparison with the chain counts transfers of others only.
    if (payer === payTo) return refuse('payer_is_payee', 'the payee cannot pay itself: use another wallet');
    if (amount !== terms.amount) {
      return refuse('amount_mismatch', `the authorization must be of exactly ${terms.amount}`);
    }
    return ALLOWED;
  };
  return {
    validateTerms,
    validateNew(payment, nowMs) {
      const verdict = validateTerms(payment);
      return isRefused(verdict) ? verdict : validateTimeWindow(timesOf(payment), nowMs);
    },
    validateTicket(payment, run) {
      const verdict = validateTerms(payment);
      return isRefused(verdict) ? verdict : validateRunWindow(timesOf(payment), payment.signer, run);
    },
  };
}
