// One purchase: the 402 is compared with the buyer's limits before anything is signed. One payment is signed and presented
// until the relay gives a final answer; the result is the buyer's only if every member of it is as ordered.
import { parsedJson } from '#src/domain/canonical-json.ts';
import { judgeHeaders } from '#src/domain/destination/headers.ts';
import { readTarget, type Target } from '#src/domain/destination/url.ts';
import { utf8 } from '#src/domain/encoding.ts';
import {
  type NormalRequest,
  normaliseRequest,
  type WebhookRequest,
} from '#src/domain/job/webhook-request.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { receiptDocumentOf } from '#src/domain/receipt/document.ts';
import { readReceipt } from '#src/domain/receipt/payload.ts';
import { isRefused } from '#src/domain/refusal.ts';
import type { Primitives } from '#src/domain/signing-keys/keys.ts';
import { fromJwkSet, type KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { checkExecution, type Evidence } from './evidence.ts';
import type { Ledger, LedgerOrder, LedgerRecord } from './ledger.ts';
import {
  type BuyerLimits,
  type Finding,
  judgeOffer,
  microUsdOf,
  type Offer,
  readOffer,
  type Terms,
  type ToSign,
} from './offer.ts';
import { newPayment, type Payer, type Payment, samePayment } from './payment.ts';
import { demandAllowedTarget } from './policy-check.ts';
import { type Answer, describe, type PresentDeps, type Problem, present } from './present.ts';
import { PurchaseError } from './purchase-error.ts';

type PurchaseDeps = PresentDeps & {
  readonly primitives: Primitives;
  /** null: nothing is recorded, and the day's sum is not limited. */
  readonly ledger: Ledger | null;
};

export type Order = {
  /** Origin of the relay. */
  readonly relay: string;
  /** Body of the execution, as the route takes it. */
  readonly request: WebhookRequest;
  readonly limits: BuyerLimits;
  /** null: compare the offer only, do not pay. */
  readonly payer: Payer | null;
  /** The relay's signing keys, from a source that the buyer trusts; null: those that the relay publishes. */
  readonly keys: readonly KeyRecord[] | null;
  /**
   * The buyer may have ordered the same with the same idempotency key before: without a ledger, the result of that
   * purchase is accepted. With one, only that of the recorded payment is.
   */
  readonly repeatable: boolean;
  /** The decision that approved the request: the guided route is called. Not with a ledger. */
  readonly decisionId?: string;
  /** A relay in demo mode, which asks for no payment, may execute the request: the receipt then states that none was made. */
  readonly acceptDemo?: boolean;
};

export type PurchaseResult = {
  /** `unverified`: an answer that is not proven to be this purchase. `unfinished`: no final answer. */
  readonly outcome:
    | 'delivered'
    | 'target_failed'
    | 'unverified'
    | 'not_paid'
    | 'policy_refused'
    | 'relay_refused'
    | 'unfinished';
  /** Why it is not a verified purchase; null if it is one, or if nothing was to be paid. */
  readonly error: PurchaseError | null;
  readonly relay: string;
  /** What was compared with the limits, and accepted if all findings are good. */
  readonly terms: Terms | null;
  readonly policy: readonly Finding[];
  readonly payment: Payment | null;
  /** Of a relay that refused. */
  readonly problem: Problem | null;
  readonly evidence: Evidence | null;
};

const PATH = '/api/execute/webhook';
const GUIDED_PATH = '/api/execute/guided-webhook';

/** Throws if the relay cannot be reached, or the ledger cannot be used; what the relay answers is part of the result. */
export async function purchase(deps: PurchaseDeps, order: Order): Promise<PurchaseResult> {
  try {
    return await buy(deps, order);
  } catch (error) {
    if (error instanceof PurchaseError)
      return { ...NOTHING, relay: order.relay, outcome: 'policy_refused', error };
    throw error;
  }
}

const NOTHING = {
  error: null,
  terms: null,
  policy: [],
  payment: null,
  problem: null,
  evidence: null,
} as const;

type Ordered = {
  readonly url: string;
  readonly target: Target;
  readonly request: NormalRequest;
  readonly name: LedgerOrder | null;
};

/** Throws `PurchaseError` for what ends a purchase before its offer is compared. */
async function buy(deps: PurchaseDeps, order: Order): Promise<PurchaseResult> {
  const { relay, limits, payer } = order;
  const ordered = readOrder(order);
  const { url, target, name } = ordered;
  const recorded = name === null ? null : ((await deps.ledger?.find(name)) ?? null);
  const offer = recorded === null ? await askOffer(deps, url, order) : offerOf(recorded, url);
  if (recorded === null && payer !== null) await demandAllowedTarget(deps, relay, order.request);
  if (offer === 'demo') return executeUnpaid(deps, order, ordered);
  const { required, findings: policy } = judgeOffer(offer, limits, {
    resourceUrl: url,
    targetHost: target.hostname,
  });
  const result = { ...NOTHING, relay, terms: required?.accepts[0] ?? null, policy };
  // Nothing is signed in a dry run: it needs no payee.
  const needless = payer === null && limits.payTo === null ? 'pay_to' : null;
  const bad = policy.find((finding) => !finding.ok && finding.name !== needless);
  if (bad !== undefined || required === null)
    return { ...result, outcome: 'policy_refused', error: refusalOf(bad) };
  if (payer === null) return { ...result, outcome: 'not_paid' };
  try {
    const keys = demandKeys(order.keys ?? (await publishedKeys(deps, relay)));
    const paid = await signOnce(deps, { payer, required, name, recorded });
    return { ...result, payment: paid.payment, ...(await deliver(deps, order, ordered, { ...paid, keys })) };
  } catch (error) {
    if (error instanceof PurchaseError) return { ...result, outcome: 'policy_refused', error };
    throw error;
  }
}

/** A relay in demo mode. Throws `PurchaseError`. */
async function executeUnpaid(deps: PurchaseDeps, order: Order, ordered: Ordered): Promise<PurchaseResult> {
  const keys = demandKeys(order.keys ?? (await publishedKeys(deps, order.relay)));
  const delivered = await deliver(deps, order, ordered, {
    payment: null,
    signedAtMs: deps.clock.now(),
    keys,
  });
  return { ...NOTHING, relay: order.relay, ...delivered };
}

export const refusalOf = (bad: Finding | undefined): PurchaseError =>
  new PurchaseError(
    bad === undefined
      ? { member: 'offer', expected: 'readable terms', actual: 'none' }
      : { member: `offer.${bad.name}`, expected: bad.expected, actual: bad.offered },
  );

/** Throws `OperatorError` for a request that every relay refuses: nothing is signed for it. `body`: as it is sent. */
export function checkedTarget({ url, headers: given = {} }: WebhookRequest, body: string): Target {
  const target = readTarget(url);
  if (isRefused(target)) throw new OperatorError(target.message);
  const headers = judgeHeaders(given);
  if (isRefused(headers)) throw new OperatorError(headers.message);
  const { max } = LIMITS.requestBodyBytes;
  if (utf8(body).length > max) throw new OperatorError(`The request is over ${max} bytes.`);
  return target;
}

function readOrder({ relay, request, payer, decisionId }: Order): Ordered {
  const target = checkedTarget(request, JSON.stringify(request));
  const { idempotencyKeyLength: keyLength } = LIMITS;
  const length = request.idempotencyKey?.length ?? keyLength.min;
  if (length < keyLength.min || length > keyLength.max)
    throw new OperatorError(`The idempotency key must have ${keyLength.min} to ${keyLength.max} characters.`);
  const normal = normaliseRequest(request, target.href);
  const { idempotencyKey } = normal;
  const name =
    payer === null || payer.address === null || idempotencyKey === null
      ? null
      : { relay, payer: payer.address, idempotencyKey, request: JSON.stringify(normal) };
  return { url: `${relay}${decisionId === undefined ? PATH : GUIDED_PATH}`, target, request: normal, name };
}

/** The 402; `demo` if none is needed. The body is empty: a relay without payment must not execute the call. */
async function askOffer(
  { send }: PurchaseDeps,
  url: string,
  { acceptDemo, payer }: Order,
): Promise<Offer | 'demo'> {
  const headers = { 'content-type': 'application/json' };
  const answer = await send(new Request(url, { method: 'POST', headers, body: '{}' })).catch((cause) => {
    throw new OperatorError(`${url} cannot be reached`, { cause });
  });
  const { status } = answer;
  if (status !== 402) {
    if (status === 400 && acceptDemo && payer !== null) return 'demo';
    const actual = describe({ status, headers: answer.headers, body: await answer.text() });
    throw new PurchaseError({ member: 'offer', expected: '402', actual });
  }
  const offer = readOffer(answer.headers);
  if (offer !== null) return offer;
  const expected = 'payment requirements of x402 version 2 in the header PAYMENT-REQUIRED';
  throw new PurchaseError({ member: 'offer', expected, actual: 'none that are readable' });
}

const offerOf = ({ terms }: LedgerRecord, url: string): Offer => ({
  x402Version: 2,
  resource: { url },
  accepts: [terms],
});

/** Empty if the relay publishes none. */
async function publishedKeys({ send }: PurchaseDeps, relay: string): Promise<readonly KeyRecord[]> {
  try {
    const answer = await send(new Request(`${relay}/.well-known/jwks.json`));
    return (answer.status === 200 ? fromJwkSet(parsedJson(await answer.text())) : null) ?? [];
  } catch {
    return [];
  }
}

/** Throws `PurchaseError`: without keys no receipt can be verified, so nothing is paid. */
function demandKeys(keys: readonly KeyRecord[]): readonly KeyRecord[] {
  if (keys.some(({ purpose }) => purpose === 'receipt')) return keys;
  throw new PurchaseError({
    member: 'keys',
    expected: 'a key of the relay that signs receipts',
    actual: 'none',
  });
}

type Paid = { readonly payment: Payment; readonly signedAtMs: number };

/** `payment` null: in demo mode. */
type Executing = { readonly payment: Payment | null; readonly signedAtMs: number };

/** The payment of this order: the recorded one if there is one, else a new one, recorded before it is returned. */
async function signOnce(
  { ledger, clock }: PurchaseDeps,
  {
    payer,
    required,
    name,
    recorded,
  }: {
    readonly payer: Payer;
    readonly required: ToSign;
    readonly name: LedgerOrder | null;
    readonly recorded: LedgerRecord | null;
  },
): Promise<Paid> {
  const again = async (record: LedgerRecord): Promise<Paid> => ({
    payment: await samePayment(payer, { ...required, accepts: [record.terms] }, record),
    signedAtMs: Date.parse(record.at),
  });
  if (recorded !== null) return again(recorded);
  const signedAtMs = clock.now();
  const sign = () => newPayment(payer, required, clock);
  if (ledger === null || name === null) return { payment: await sign(), signedAtMs };
  const claimed = await ledger.claim(name, microUsdOf(required.accepts[0]) ?? 0n, sign);
  return claimed.kind === 'recorded' ? again(claimed.record) : { payment: claimed.payment, signedAtMs };
}

/** Presents the payment, and checks the answer. */
async function deliver(
  deps: PurchaseDeps,
  order: Order,
  { url, request, target }: Ordered,
  { payment, signedAtMs, keys }: Executing & { readonly keys: readonly KeyRecord[] },
): Promise<Pick<PurchaseResult, 'outcome' | 'error' | 'problem' | 'evidence'>> {
  const { decisionId, request: action } = order;
  const body = decisionId === undefined ? action : { decisionId, action };
  const presented = await present(deps, url, JSON.stringify(body), payment?.header ?? null);
  if (presented.kind !== 'executed') {
    const actual = presented.kind === 'refused' ? presented.actual : presented.last;
    const error = new PurchaseError({ member: 'answer', expected: 'an execution, 200 or 502', actual });
    if (presented.kind === 'unfinished')
      return { outcome: 'unfinished', error, problem: null, evidence: null };
    return { outcome: 'relay_refused', error, problem: presented.problem, evidence: null };
  }
  const { answer } = presented;
  const evidence = await checkExecution(deps.primitives, answer, {
    relay: order.relay,
    request,
    decisionId: decisionId ?? null,
    target,
    payment,
    signedAtMs,
    nowMs: deps.clock.now(),
    keys: await keysFor(deps, order, keys, answer),
    mayBeEarlier: order.repeatable && deps.ledger === null,
  });
  if ('member' in evidence)
    return { outcome: 'unverified', error: new PurchaseError(evidence), problem: null, evidence: null };
  const [mismatch] = evidence.mismatches;
  if (mismatch !== undefined)
    return { outcome: 'unverified', error: new PurchaseError(mismatch), problem: null, evidence };
  const outcome = answer.status === 200 ? 'delivered' : 'target_failed';
  return { outcome, error: null, problem: null, evidence };
}

/** Published keys are fetched again if the receipt names a newer one. */
async function keysFor(
  deps: PurchaseDeps,
  { relay, keys: pinned }: Order,
  keys: readonly KeyRecord[],
  { body }: Answer,
): Promise<readonly KeyRecord[]> {
  const document = receiptDocumentOf(parsedJson(body));
  const kid = document.kind === null ? null : readReceipt(document.jws).jws?.header.kid;
  if (pinned !== null || keys.some(({ keyId }) => keyId === kid)) return keys;
  return publishedKeys(deps, relay);
}
