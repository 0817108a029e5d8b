// A configured x402 adapter, a wallet that pays, and payment headers in the protocol's form.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { decodePaymentRequiredHeader } from '@x402/core/http';
import type { PaymentRequired } from '@x402/core/types';
import type { Hex } from 'viem';
import type { FacilitatorLogin } from '#src/adapters/payments/login.ts';
import type { X402Settings } from '#src/adapters/payments/requirements.ts';
import { type X402, x402Payments } from '#src/adapters/payments/x402.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { apiKeyId, apiKeySecret } from '#src/config-login.ts';
import { PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import { isRefused } from '#src/domain/refusal.ts';
import type { AbortSignalLike } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { ReadHeader } from '#src/ports/payment-protocol.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import type { ApiKey } from '#test/support/chain/facilitator-login.ts';
import {
  type Authorization,
  type Domain,
  newPayer,
  type Payer,
  signAuthorization,
} from '#test/support/chain/payer.ts';
import { startChainNode } from '#test/support/chain/scripted-node.ts';
import { signerOf, testKey } from '#test/support/given/primitives.ts';
import { type CollectingLogger, collectingLogger } from '#test/support/world/fakes.ts';

export const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
export const PAY_TO = '0x1111111111111111111111111111111111111111';
export const BASE_URL = 'https://relay.example';
export const UNREACHABLE_URL = 'http://127.0.0.1:9';

export const offerKey = testKey();
/** As did:web publishes it: the package's check requires `alg`. */
export const PUBLIC_KEY = { kty: 'OKP', crv: 'Ed25519', x: offerKey.x, alg: 'EdDSA' };
export const KEY_URL = `did:web:relay.example#${offerKey.keyId}`;

/** As the configuration reads the key's variables. */
export const loginOf = ({ id, secret }: ApiKey): FacilitatorLogin => ({
  kind: 'cdp',
  keyId: apiKeyId(id),
  key: apiKeySecret(secret),
});

/** The node of every lab that names no other, for all files of a process. */
export const chain = await startChainNode();

export type LabOptions = {
  readonly x402?: Partial<X402Settings>;
  readonly clock?: Clock;
  readonly stopping?: AbortSignalLike;
};

export async function lab(
  options: LabOptions = {},
): Promise<X402 & { readonly lines: CollectingLogger['lines'] }> {
  const logger = collectingLogger();
  const x402 = await x402Payments({
    x402: {
      payTo: PAY_TO,
      facilitatorUrl: UNREACHABLE_URL,
      network: 'eip155:8453',
      priceUsd: '0.003',
      asset: null,
      rpcUrl: `${chain.url}/${(options.x402?.network ?? 'eip155:8453').slice('eip155:'.length)}`,
      facilitatorTimeoutMs: 5000,
      confirmations: null,
      login: null,
      ...options.x402,
    },
    baseUrl: BASE_URL,
    routes: PAID_ROUTES,
    offerKey: { signer: signerOf(offerKey), did: 'did:web:relay.example' },
    clock: options.clock ?? systemClock(),
    logger,
    ...(options.stopping && { stopping: options.stopping }),
  });
  return { ...x402, lines: logger.lines };
}

export type { Authorization };
export const wallet = newPayer;
export const randomNonce = (): Hex => `0x${randomBytes(32).toString('hex')}`;
export const DOMAIN: Domain = {
  name: 'USD Coin',
  version: '2',
  chainId: 8453,
  verifyingContract: USDC,
};

/** A valid authorization of `account`, with some fields changed. */
export function authorizationOf(account: Payer, changes: Partial<Authorization> = {}): Authorization {
  const now = Math.floor(Date.now() / 1000);
  return {
    from: account.address,
    to: PAY_TO,
    value: '3000',
    validAfter: String(now - 600),
    validBefore: String(now + 120),
    nonce: randomNonce(),
    ...changes,
  };
}

export const signatureOf = (account: Payer, authorization: Authorization, domain: Partial<Domain> = {}) =>
  signAuthorization(account, authorization, { ...DOMAIN, ...domain });

export type Payload = { authorization: Authorization; signature: string };

export async function payloadOf(account: Payer, changes: Partial<Authorization> = {}): Promise<Payload> {
  const authorization = authorizationOf(account, changes);
  return { authorization, signature: await signatureOf(account, authorization) };
}

export const ACCEPTED = {
  scheme: 'exact',
  network: 'eip155:8453',
  amount: '3000',
  asset: USDC,
  payTo: PAY_TO,
  maxTimeoutSeconds: 120,
  extra: { name: 'USD Coin', version: '2', paymentFlow: 'upfront' },
};

export const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64');

export const v2 = (payload: unknown, accepted: object = ACCEPTED, more: object = {}): ReadHeader =>
  headers({ 'PAYMENT-SIGNATURE': base64({ x402Version: 2, accepted, payload, ...more }) });

export const v1 = (payload: unknown, more: object = {}): ReadHeader =>
  headers({ 'X-PAYMENT': base64({ x402Version: 1, scheme: 'exact', network: 'base', payload, ...more }) });

/** Header names in any case. */
export function headers(values: Readonly<Record<string, string>>): ReadHeader {
  const held = new Headers();
  for (const [name, value] of Object.entries(values)) held.set(name, value);
  return (name) => held.get(name);
}

/** Who presents what the lab presents. */
export const CLIENT = '198.51.100.1';

/** The payment in `header`; fails if it is refused. */
export async function presented({ protocol }: X402, header: ReadHeader): Promise<PresentedPayment> {
  const read = await protocol.read(header, CLIENT);
  if (isRefused(read)) throw new Error(`refused: ${JSON.stringify(read)}`);
  return read;
}

/** The code of the refusal; fails if the payment is accepted. */
export async function refusalOf({ protocol }: X402, header: ReadHeader): Promise<unknown> {
  const read = await protocol.read(header, CLIENT);
  if (!isRefused(read)) throw new Error('it was taken');
  return (read.details as { reason: unknown }).reason;
}

export async function challenged(
  { protocol }: X402,
  ask: Partial<Parameters<X402['protocol']['challenge']>[0]> = {},
): Promise<{ readonly required: PaymentRequired; readonly body: unknown; readonly header: string }> {
  const answer = await protocol.challenge({
    route: 'execute/webhook',
    reason: 'payment_required',
    message: null,
    hints: [],
    ...ask,
  });
  const header = answer.headers['PAYMENT-REQUIRED'] ?? '';
  return { required: decodePaymentRequiredHeader(header), body: answer.body, header };
}

/** A signed offer or receipt in the form that its verification requires. */
export function jwsOf(signed: { readonly format: string; readonly signature: string } | undefined) {
  assert.equal(signed?.format, 'jws');
  return { format: 'jws' as const, signature: signed?.signature ?? '' };
}
