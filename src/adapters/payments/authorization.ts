// An authorization to move money (EIP-3009) and its signature: one spelling, its identity, and who signed it.
// Whether it is what we ask for, and whether it is good on the chain, others judge.
import { createHash } from 'node:crypto';
import { z } from '@x402/core/schemas';
import { authorizationTypes } from '@x402/evm';
import { recoverTypedDataAddress } from 'viem';
import { canonicalJson } from '#src/domain/canonical-json.ts';
import { identityText } from '#src/domain/payment/events.ts';
import { lowerHex, type Terms } from './terms.ts';

export type Hex = `0x${string}`;

export type Authorization = {
  readonly from: Hex;
  readonly to: Hex;
  readonly value: string;
  readonly validAfter: string;
  readonly validBefore: string;
  readonly nonce: Hex;
};

/** All in lower case; numbers decimal, without sign or leading zero: one authorization has one spelling. */
export type Signed = { readonly authorization: Authorization; readonly signature: Hex };

/** Longer than any contract wallet's, ERC-6492 wrapping included. */
const SIGNATURE_MAX_BYTES = 4096;

const hex = (form: RegExp) => z.string().regex(form).transform(lowerHex);
const Address = hex(/^0x[0-9a-f]{40}$/i);
const Decimal = z.string().regex(/^(0|[1-9]\d{0,77})$/);

/** Unknown members are dropped: what is handed on is rebuilt from these. */
export const SignedForm = z.object({
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
    .transform((text) => usualV(lowerHex(text))),
});

/** The payment's identity, whatever header carried it. */
export function identityOf({ network, asset }: Terms, { from: payer, nonce }: Authorization): string {
  return sha256Hex(identityText({ network, asset, payer, nonce }));
}

export function payloadHashOf({ authorization, signature }: Signed): string {
  return sha256Hex(canonicalJson({ authorization, signature }));
}

/** A signature that a key alone can have made; any other is a contract wallet's to judge. */
export const isKeySignature = (signature: Hex): boolean => signature.length === 2 + 2 * 65;

/** The address whose key signed for our asset; null where none can have. Never throws. */
export async function recoverSigner(terms: Terms, signed: Signed): Promise<Hex | null> {
  const { authorization, signature } = signed;
  if (!hasLowS(signature)) return null;
  try {
    const address = await recoverTypedDataAddress({
      domain: { ...terms.domain, chainId: terms.chainId, verifyingContract: terms.asset },
      types: authorizationTypes,
      primaryType: 'TransferWithAuthorization',
      message: {
        ...authorization,
        value: BigInt(authorization.value),
        validAfter: BigInt(authorization.validAfter),
        validBefore: BigInt(authorization.validBefore),
      },
      signature,
    });
    return lowerHex(address);
  } catch {
    // no point of the curve, a strange recovery id, a number over 256 bits
    return null;
  }
}

/** Some wallets write the recovery id as 0 or 1; the asset's contract knows 27 and 28 only. */
function usualV(signature: Hex): Hex {
  if (!isKeySignature(signature)) return signature;
  const v = signature.slice(-2);
  return v === '00' || v === '01' ? `${signature.slice(0, -2) as Hex}${v === '00' ? '1b' : '1c'}` : signature;
}

/** Half of secp256k1's order: the asset refuses a larger s (EIP-2), of which each signature has a twin. */
const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;
const hasLowS = (signature: Hex): boolean => BigInt(`0x${signature.slice(66, 130)}`) <= HALF_ORDER;

const sha256Hex = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');
