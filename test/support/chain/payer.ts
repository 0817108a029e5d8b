// A payer of the service: one authorization, made by the stock client, presented as often and in whatever header the
// test wants; and the same with something in it changed.
import assert from 'node:assert/strict';
import { x402HTTPClient } from '@x402/core/client';
import type { PaymentPayload, PaymentRequired } from '@x402/core/types';
import { authorizationTypes } from '@x402/evm';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client } from '@x402/fetch';
import type { Hex } from 'viem';
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { TOKEN } from '#src/demo/payments/chain.ts';

export type Payer = PrivateKeyAccount;
export const newPayer = (): Payer => privateKeyToAccount(generatePrivateKey());

/** An exact EVM payload; both versions have the same. */
type Signed = { authorization: Authorization; signature: Hex };
export type Authorization = {
  from: Hex;
  to: Hex;
  value: string;
  validAfter: string;
  validBefore: string;
  nonce: Hex;
};
type Terms = PaymentRequired['accepts'][number];

export type Payment = {
  readonly payer: Payer;
  readonly nonce: Hex;
  /** Unix seconds. */
  readonly validBefore: number;
  /** The headers that present it, by version. */
  readonly headers: { readonly 1: Header; readonly 2: Header };
  readonly payload: PaymentPayload;
};
type Header = Readonly<Record<string, string>>;

const httpClient = (payer: Payer) =>
  new x402HTTPClient(registerExactEvmScheme(new x402Client(), { signer: payer }));

/** The requirements of a 402, as the stock client reads its header. `order`: a body whose price is asked for. */
export async function challenge(url: string, order?: unknown): Promise<PaymentRequired> {
  const headers = { 'content-type': 'application/json' };
  const asking = order === undefined ? {} : { headers, body: JSON.stringify(order) };
  const response = await fetch(url, { method: 'POST', ...asking });
  assert.equal(response.status, 402);
  const body = await response.json();
  return httpClient(newPayer()).getPaymentRequiredResponse((name) => response.headers.get(name), body);
}

/** 3000 units to a new payee, as a facilitator is asked; and the same in a 402. */
export const termsOf = (changes: Partial<Terms> = {}): Terms & { readonly payTo: Hex } => ({
  scheme: 'exact',
  network: 'eip155:8453',
  amount: '3000',
  asset: TOKEN,
  maxTimeoutSeconds: 120,
  extra: { name: 'USD Coin', version: '2' },
  ...changes,
  payTo: (changes.payTo ?? newPayer().address) as Hex,
});
export const requiring = (terms: Terms): PaymentRequired => ({
  x402Version: 2,
  resource: { url: 'https://relay.test/', description: '', mimeType: '' },
  accepts: [terms],
});

/** `terms`: signed instead of the required ones, while the header accepts the required ones. */
export async function makePayment(
  payer: Payer,
  asked: PaymentRequired,
  terms: Partial<Terms> = {},
): Promise<Payment> {
  const [offered] = asked.accepts;
  assert.ok(offered);
  const client = httpClient(payer);
  const made = await client.createPaymentPayload({ ...asked, accepts: [{ ...offered, ...terms }] });
  return presented(payer, { ...made, accepted: offered });
}

/** `change` receives a copy and must change it. */
export function altered(
  payment: Payment,
  change: (payload: PaymentPayload, signed: Signed) => void,
): Payment {
  const payload = structuredClone(payment.payload);
  change(payload, signedOf(payload));
  assert.notDeepEqual(payload, payment.payload, 'the payment was altered');
  return presented(payment.payer, payload);
}

/** Signs the changed terms as the payer: a valid signature of another authorization. */
export async function resigned(
  payment: Payment,
  change: (authorization: Signed['authorization']) => void,
): Promise<Payment> {
  const authorization = { ...signedOf(payment.payload).authorization };
  change(authorization);
  const signature = await signAuthorization(payment.payer, authorization, domainOf(payment.payload));
  return altered(payment, (_payload, signed) => Object.assign(signed, { authorization, signature }));
}

const domainOf = ({ accepted: { extra, asset } }: PaymentPayload) => ({
  name: String(extra.name),
  version: String(extra.version),
  chainId: 8453,
  verifyingContract: asset as Hex,
});

export type Domain = { name: string; version: string; chainId: number; verifyingContract: Hex };

export const signAuthorization = (
  by: Payer,
  { value, validAfter, validBefore, ...parties }: Signed['authorization'],
  domain: Domain,
): Promise<Hex> =>
  by.signTypedData({
    domain,
    types: authorizationTypes,
    primaryType: 'TransferWithAuthorization',
    message: {
      ...parties,
      value: BigInt(value),
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore),
    },
  });

export const signCancellation = (by: Payer, nonce: Hex, domain: Domain): Promise<Hex> =>
  by.signTypedData({
    domain,
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer: by.address, nonce },
  });

const signedOf = (payload: PaymentPayload) => payload.payload as unknown as Signed;

function presented(payer: Payer, payload: PaymentPayload): Payment {
  const { nonce, validBefore } = signedOf(payload).authorization;
  const first = { x402Version: 1, scheme: 'exact', network: 'base', payload: payload.payload };
  const headers = {
    1: { 'x-payment': Buffer.from(JSON.stringify(first)).toString('base64') },
    2: httpClient(payer).encodePaymentSignatureHeader(payload),
  };
  return { payer, nonce, validBefore: Number(validBefore), headers, payload };
}
