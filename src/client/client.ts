// The buyer's library: a stock x402 client in, a verified purchase or a typed error out. It is the same purchase as `relay
// pay` makes, without its ledger.
import type { x402Client } from '@x402/fetch';
import { limitedSend } from '../buyer/present.ts';
import { type CallResult, type Order, purchase } from '../buyer/purchase.ts';
import type { Json } from '../domain/canonical-json.ts';
import { isSpellableName, relayOrigin } from '../domain/destination/url.ts';
import { microUsd } from '../domain/payment/price.ts';
import type { VerificationReport } from '../domain/receipt/report.ts';
import { OperatorError } from '../lib/operator-error.ts';
import { sleep } from '../lib/time.ts';
import { type Given, keySetOf } from '../verify/given.ts';
import { webPrimitives } from '../verify/primitives.ts';

export type RelayClientOptions = {
  /** Origin of the relay, as in https://relay.example. */
  readonly relay: string;
  /** A client of @x402/fetch (or @x402/core) with a scheme for the network: it signs one payment for a call. */
  readonly wallet: Pick<x402Client, 'createPaymentPayload'>;
  /** US dollars that a call may cost at most, decimal, as in '0.003'. */
  readonly maxPriceUsd: string;
  /** CAIP-2, as in 'eip155:8453'. */
  readonly network: string;
  /** The payee: 0x and 40 hex digits. No one else is paid. */
  readonly payTo: string;
  /** The relay's JWK set, from a source that you trust; without it, the keys that the relay publishes are used. */
  readonly keys?: Given;
  /** Hosts that may be called, or '*.example.com' for every name under it; without it, any. */
  readonly allowHosts?: readonly string[];
  /** Accept a relay in demo mode, which asks for no payment and executes without one. */
  readonly acceptDemo?: boolean;
  /** Called before the same payment is presented again, which is after `ms` milliseconds. */
  readonly onWait?: (why: string, ms: number) => void;
  /** In place of `fetch`: one request and its complete answer; it must not follow redirects. */
  readonly send?: (request: Request) => Promise<Response>;
};

export type WebhookOrder = {
  /** Absolute HTTPS URL to call. */
  readonly url: string;
  readonly method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly headers?: Readonly<Record<string, string | number | boolean>>;
  /** Any JSON. */
  readonly body?: unknown;
  /** A repeat with the same key and the same order returns the recorded result, and nothing is charged again. */
  readonly idempotencyKey?: string;
  readonly retry?: { readonly attempts?: number; readonly backoffMs?: number };
  readonly timeoutMs?: number;
};

export type ExecuteOptions = {
  /** Return what the target answers: the relay does it once, in its first answer, and stores it nowhere. */
  readonly returnResponse?: boolean;
};

/** Every member is compared with the order, the payment and the signed receipt. */
export type VerifiedPurchase = {
  /** `delivered`: the target answered 2xx. `target_failed`: it did not; the attempt was paid for, and has a receipt too. */
  readonly outcome: 'delivered' | 'target_failed';
  readonly mode: string;
  readonly job: {
    readonly id: string;
    readonly status: string;
    readonly attempts: number;
    readonly responseStatus: number | null;
    readonly errorCategory: string | null;
  };
  readonly receipt: { readonly id: string; readonly keyId: string; readonly jws: string };
  /** Open the commitments of the receipt; only you receive them. */
  readonly disclosures: readonly string[];
  /** The newest checkpoint of the transparency log: keep it. */
  readonly checkpoint: string | null;
  /** The result was recorded before: nothing was sent or charged again. */
  readonly idempotentReplay: boolean;
  /** The receipt is of an earlier execution with the same key; the payment that was signed now is not needed. */
  readonly earlierPayment: boolean;
  /** null in demo mode. `transaction` null: settled, but unknown to the relay. */
  readonly payment: {
    readonly payer: string;
    readonly nonce: string;
    readonly payloadHash: string;
    readonly transaction: string | null;
  } | null;
  /** The offline report of the receipt. */
  readonly verification: VerificationReport;
  readonly links: Readonly<Record<string, string>>;
  /**
   * What the target answered: the receipt commits to the bytes of the body, at most 64 KiB, and states status and cut. null:
   * it was not asked for, the first answer was lost, or the relay returns none.
   */
  readonly response: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: Uint8Array;
    readonly truncated: boolean | 'unknown';
  } | null;
};

/**
 * `not_sent`: the order or the relay's address cannot be used; nothing was signed. `policy_refused`: the offer is not within
 * your limits; nothing was signed. `relay_refused`: the relay refused (`problem`), and states that nothing was sent.
 * `unfinished`: no final answer in two minutes, the payment may be spent: only `payment` brings the result. `unverified`:
 * an answer that is not proven to be this purchase.
 */
export type RelayErrorCode = 'not_sent' | 'policy_refused' | 'relay_refused' | 'unfinished' | 'unverified';

/** `member`: path of what differs, as in `offer.price` or `receipt.payment.payer`. */
export class RelayError extends Error {
  override readonly name = 'RelayError';
  readonly code: RelayErrorCode;
  readonly member: string | null;
  readonly expected: string | null;
  readonly actual: string | null;
  /** The relay's own error: its code and its message. */
  readonly problem: { readonly code: string; readonly message: string } | null;
  /** The header of the signed payment. Present it with the same request, and it returns the result, charged once. */
  readonly payment: { readonly name: string; readonly value: string } | null;
  constructor(code: RelayErrorCode, message: string, details: Partial<RelayErrorDetails> = {}) {
    super(`${code}: ${message}`, { cause: details.cause });
    this.code = code;
    this.member = details.member ?? null;
    this.expected = details.expected ?? null;
    this.actual = details.actual ?? null;
    this.problem = details.problem ?? null;
    this.payment = details.payment ?? null;
  }
}

type RelayErrorDetails = Pick<RelayError, 'member' | 'expected' | 'actual' | 'problem' | 'payment'> & {
  readonly cause: unknown;
};

export type RelayClient = {
  /** Buys one call. Resolves only with a verified purchase; rejects with a `RelayError`. */
  execute(order: WebhookOrder, options?: ExecuteOptions): Promise<VerifiedPurchase>;
  /** The same for what a decision approved (POST /api/decide/webhook): the action must be the one that was decided on. */
  executeGuided(
    decisionId: string,
    action: WebhookOrder,
    options?: ExecuteOptions,
  ): Promise<VerifiedPurchase>;
};

/** Throws a TypeError for an option that cannot be used. Nothing is requested before a call. */
export function relayClient(options: RelayClientOptions): RelayClient {
  const { relay, limits, keys } = readOptions(options);
  const payer: Order['payer'] = {
    address: null,
    pay: (required) => options.wallet.createPaymentPayload(required),
  };
  const deps = {
    send: options.send ?? limitedSend(),
    clock: { now: () => Date.now(), monotonic: () => performance.now(), sleep: (ms: number) => sleep(ms) },
    primitives: webPrimitives,
    waiting: options.onWait ?? (() => undefined),
    ledger: null,
  };
  const acceptDemo = options.acceptDemo ?? false;
  async function buy(
    order: WebhookOrder,
    more: Pick<Order, 'decisionId' | 'returnResponse'>,
  ): Promise<VerifiedPurchase> {
    const { body, ...rest } = order;
    const request = { ...rest, ...(body === undefined ? {} : { body: body as Json }) } as Order['request'];
    const repeatable = order.idempotencyKey !== undefined || more.decisionId !== undefined;
    try {
      return verified(
        await purchase(deps, { relay, request, limits, payer, keys, repeatable, acceptDemo, ...more }),
      );
    } catch (cause) {
      if (cause instanceof OperatorError) throw new RelayError('not_sent', cause.message, { cause });
      throw cause;
    }
  }
  return {
    execute: (order, options = {}) => buy(order, chosen(options)),
    executeGuided: (decisionId, action, options = {}) => buy(action, { decisionId, ...chosen(options) }),
  };
}

const chosen = ({ returnResponse = false }: ExecuteOptions) => ({ returnResponse });

function readOptions({ relay, maxPriceUsd, network, payTo, allowHosts, keys }: RelayClientOptions) {
  const origin = relayOrigin(relay);
  if (origin === null || ![origin, `${origin}/`].includes(relay))
    throw new TypeError('relay must be an https origin (or http on this machine)');
  const maxPriceMicroUsd = microUsd(maxPriceUsd);
  if (maxPriceMicroUsd === null) throw new TypeError("maxPriceUsd must be US dollars, as in '0.003'");
  if (!/^0x[0-9a-fA-F]{40}$/.test(payTo)) throw new TypeError('payTo must be 0x and 40 hex digits');
  const hosts = allowHosts?.map((host) => host.toLowerCase()) ?? null;
  const bad = hosts?.find((host) => !isSpellableName(host.replace(/^\*\./, '')));
  if (bad !== undefined) throw new TypeError(`allowHosts: ${bad} is no host name`);
  return {
    relay: origin,
    limits: { maxPriceMicroUsd, network, payTo, allowHosts: hosts },
    keys: keys === undefined ? null : keySetOf({ keys }),
  };
}

function verified(result: CallResult): VerifiedPurchase {
  const { outcome, error, evidence, payment, problem } = result;
  if (outcome !== 'delivered' && outcome !== 'target_failed') {
    const { member = null, expected = null, actual = null, message = outcome } = error ?? {};
    const code = outcome === 'not_paid' ? 'policy_refused' : outcome;
    const header = outcome === 'unfinished' || outcome === 'unverified' ? (payment?.header ?? null) : null;
    throw new RelayError(code, message, { member, expected, actual, problem, payment: header });
  }
  if (evidence === null) throw new Error('a verified purchase without its evidence');
  const { execution, settlement, verification, earlierPayment, response } = evidence;
  const { mode, job, receipt, disclosures, checkpoint, idempotentReplay, links } = execution;
  return {
    outcome,
    mode,
    job,
    receipt,
    disclosures,
    checkpoint,
    idempotentReplay,
    earlierPayment,
    payment: payment && {
      payer: payment.authorization.from,
      nonce: payment.authorization.nonce,
      payloadHash: payment.payloadHash,
      transaction: settlement?.transaction ?? null,
    },
    verification,
    links,
    response,
  };
}
