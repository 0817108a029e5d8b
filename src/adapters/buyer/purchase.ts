// One purchase: the 402 is compared with the buyer's limits before anything is signed. The same payment is presented until
// the relay gives a final answer; a second one is never made.
import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client, x402HTTPClient } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { parsedJson } from '#src/domain/canonical-json.ts';
import { showUsd } from '#src/domain/payment/price.ts';
import type { Primitives } from '#src/domain/receipt/report.ts';
import { fromJwkSet, type KeyRecord } from '#src/domain/signing-keys/keys.ts';
import type { Clock } from '#src/ports/clock.ts';
import { type Answer, checkExecution, type Evidence } from './evidence.ts';
import { type BuyerLimits, checkOffer, type Finding } from './offer.ts';

/** The header that carries a payment. It is charged once; presented again, it returns the recorded answer. */
type PaymentHeader = {
  readonly name: string;
  readonly value: string;
  /** Lower case. */
  readonly payer: string;
};

/** One HTTP request without following redirects; rejects if no complete answer came. */
export type Send = (request: Request) => Promise<Response>;

type PurchaseDeps = {
  readonly send: Send;
  readonly clock: Clock;
  readonly primitives: Primitives;
  /** Called before each wait. */
  readonly waiting: (why: string, ms: number) => void;
};

export type Order = {
  /** Origin of the relay. */
  readonly relay: string;
  /** Body of the execution, as the route takes it. */
  readonly request: { readonly url: string; readonly body?: unknown };
  readonly limits: Omit<BuyerLimits, 'resourceUrl'>;
  /** null: compare the offer only, do not pay. */
  readonly privateKey: `0x${string}` | null;
};

type Problem = { readonly code: string; readonly message: string };

export type PurchaseResult = {
  readonly outcome:
    | 'delivered'
    | 'target_failed'
    | 'policy_refused'
    | 'not_paid'
    | 'relay_refused'
    | 'unfinished';
  readonly relay: string;
  /** What was compared with the limits, and accepted if all findings are good. */
  readonly terms: PaymentRequirements | null;
  readonly policy: readonly Finding[];
  readonly payment: PaymentHeader | null;
  /** Of a relay that refused or did not finish. */
  readonly problem: Problem | null;
  readonly evidence: Evidence | null;
};

const PATH = '/api/execute/webhook';

/** Throws if the relay cannot be reached or requires no payment; a refusal or a problem is part of the result. */
export async function purchase(deps: PurchaseDeps, order: Order): Promise<PurchaseResult> {
  const { relay, limits, privateKey } = order;
  const url = `${relay}${PATH}`;
  const account = privateKey === null ? null : privateKeyToAccount(privateKey);
  const required = await paymentRequired(deps, url);
  const { accepted: terms, findings: policy } = checkOffer(required, { ...limits, resourceUrl: url });
  const offer = { ...NOTHING, relay, terms, policy };
  // Nothing is signed in a dry run: it needs no payee.
  const needless = account === null && limits.payTo === null ? 'pay_to' : null;
  const allowed = policy.every(({ ok, name }) => ok || name === needless);
  if (!allowed || terms === null) return { ...offer, outcome: 'policy_refused' };
  if (account === null) return { ...offer, outcome: 'not_paid' };

  const network = limits.network as `${string}:${string}`;
  const client = x402Client.fromConfig({
    schemes: [{ network, client: new ExactEvmScheme(account) }],
    spendControls: { maxAmountPerPayment: showUsd(limits.maxPriceMicroUsd) },
  });
  const payload = await client.createPaymentPayload({ ...required, accepts: [terms] });
  const [header] = Object.entries(new x402HTTPClient(client).encodePaymentSignatureHeader(payload));
  if (header === undefined) throw new Error('the x402 client made no payment header');
  const payment = { name: header[0], value: header[1], payer: account.address.toLowerCase() };
  return delivery(deps, order, { payment, terms, policy });
}

const NOTHING = { payment: null, problem: null, evidence: null } as const;

/** Throws unless the answer is a 402 of version 2. The body is empty: a relay without payment must not execute the call. */
async function paymentRequired({ send }: PurchaseDeps, url: string): Promise<PaymentRequired> {
  const headers = { 'content-type': 'application/json' };
  const answer = await send(new Request(url, { method: 'POST', headers, body: '{}' })).catch((cause) => {
    throw new Error(`${url} cannot be reached`, { cause });
  });
  if (answer.status !== 402)
    throw new Error(`${url} answered ${answer.status} instead of 402: it requires no payment now`);
  try {
    const http = new x402HTTPClient(new x402Client());
    const required = http.getPaymentRequiredResponse((name) => answer.headers.get(name));
    const { x402Version, resource, accepts } = required;
    if (x402Version === 2 && typeof resource?.url === 'string' && Array.isArray(accepts)) return required;
  } catch {
    // Reported below.
  }
  throw new Error(`${url} does not send readable payment requirements of x402 version 2`);
}

/** The relay's published keys. */
async function keysOf({ send }: PurchaseDeps, relay: string): Promise<readonly KeyRecord[]> {
  const answer = await send(new Request(`${relay}/.well-known/jwks.json`));
  return fromJwkSet(parsedJson(await answer.text())) ?? [];
}

/** Presents the payment, and checks the answer. */
async function delivery(
  deps: PurchaseDeps,
  { relay, request }: Order,
  paid: { payment: PaymentHeader; terms: PaymentRequirements; policy: readonly Finding[] },
): Promise<PurchaseResult> {
  const { payment, terms } = paid;
  const presented = await present(deps, `${relay}${PATH}`, JSON.stringify(request), payment);
  const state = { ...NOTHING, relay, ...paid };
  if (presented.kind === 'refused') return { ...state, outcome: 'relay_refused', problem: presented.problem };
  if (presented.kind === 'unfinished') {
    const { last } = presented;
    const message = last === NO_ANSWER ? 'the relay did not answer' : `no final answer: the last was ${last}`;
    return { ...state, outcome: 'unfinished', problem: { code: 'unfinished', message } };
  }
  const { answer } = presented;
  // The result is shown even if the keys cannot be fetched now: it then fails verification.
  const keys = await keysOf(deps, relay).catch(() => []);
  const agreed = { request, terms, payer: payment.payer, keys };
  const evidence = await checkExecution(deps.primitives, answer, agreed);
  return { ...state, outcome: answer.status === 200 ? 'delivered' : 'target_failed', evidence };
}

export type Presented =
  /** An execution response: delivered, or attempted and failed. */
  | { readonly kind: 'executed'; readonly answer: Answer }
  /** A final refusal: nothing was sent to the target. */
  | { readonly kind: 'refused'; readonly problem: Problem }
  /** No final answer in time: the same header may be presented again. `last`: the latest result. */
  | { readonly kind: 'unfinished'; readonly last: string };

const NO_ANSWER = 'no answer';

/** How long a payment is presented repeatedly. */
export const PRESENT_MS = 120_000;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 15_000;
const LONGEST_RETRY_AFTER_MS = 60_000;

/** POSTs `body` (JSON) with the payment, waits as the relay asks, and repeats with the same header. */
export async function present(
  { send, clock, waiting }: Pick<PurchaseDeps, 'send' | 'clock' | 'waiting'>,
  url: string,
  body: string,
  payment: Pick<PaymentHeader, 'name' | 'value'>,
): Promise<Presented> {
  const until = clock.monotonic() + PRESENT_MS;
  const headers = { 'content-type': 'application/json', [payment.name]: payment.value };
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    const answer = await completeAnswer(send, new Request(url, { method: 'POST', headers, body }));
    const final = answer === null ? null : finalAnswer(answer);
    if (final !== null) return final;
    const why =
      answer === null ? NO_ANSWER : [answer.status, errorOf(answer)?.code].filter(Boolean).join(' ');
    const wait = retryAfterMs(answer) ?? pause;
    if (clock.monotonic() + wait > until) return { kind: 'unfinished', last: why };
    waiting(why, wait);
    await clock.sleep(wait);
  }
}

/** Returns null if there was no answer. */
async function completeAnswer(send: Send, request: Request): Promise<Answer | null> {
  try {
    const response = await send(request);
    return { status: response.status, headers: response.headers, body: await response.text() };
  } catch {
    return null;
  }
}

/** null: presenting the same header again may still bring the result. Only the relay's own error is a final refusal. */
function finalAnswer(answer: Answer): Presented | null {
  const { status } = answer;
  const body = jsonObject(answer.body);
  if ((status === 200 || status === 502) && 'job' in body && 'receipt' in body)
    return { kind: 'executed', answer };
  if (status >= 300 && status < 400)
    return { kind: 'unfinished', last: `${status}, and redirects are not followed` };
  const error = errorOf(answer);
  // 508: the relay would call itself; a repeat cannot succeed.
  const final = status === 508 || (status >= 400 && status < 500 && !TEMPORARY.has(status));
  if (error === null || !final || error.code === 'idempotency_in_progress') return null;
  return { kind: 'refused', problem: error };
}

/** Request timeout, too many requests: not charged, and temporary. */
const TEMPORARY: ReadonlySet<number> = new Set([408, 429]);

/** From the relay's error body, or from a 402 (whose `error` is a text); null if the body is not the relay's. */
function errorOf({ status, body }: Answer): Problem | null {
  const { error } = jsonObject(body);
  // The text of a 402 begins with its code if it has a reason.
  if (typeof error === 'string')
    return status === 402 ? { code: UNPAID, message: error.replace(`${UNPAID}: `, '') } : null;
  const { code, message } = (error ?? {}) as Record<string, unknown>;
  return typeof code === 'string' ? { code, message: String(message ?? '') } : null;
}

const UNPAID = 'payment_required';

function retryAfterMs(answer: Answer | null): number | null {
  const text = answer?.headers.get('retry-after') ?? '';
  return /^\d{1,6}$/.test(text) ? Math.min(Number(text) * 1000, LONGEST_RETRY_AFTER_MS) : null;
}

/** Empty if the text is no JSON object. */
function jsonObject(text: string): Readonly<Record<string, unknown>> {
  const value = parsedJson(text);
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** The wallet's address, with its checksum. */
export const addressOf = (privateKey: `0x${string}`): `0x${string}` =>
  privateKeyToAccount(privateKey).address;
