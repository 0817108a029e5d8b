// One call: the purchase is the buyer's own only if every member of the answer is as ordered.
import { parsedJson } from '#src/domain/canonical-json.ts';
import { normaliseRequest, type WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { receiptDocumentOf } from '#src/domain/receipt/document.ts';
import { readReceipt } from '#src/domain/receipt/payload.ts';
import { fromJwkSet, type KeyRecord, type Primitives } from '#src/domain/signing-keys/keys.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { checkExecution, type PurchaseEvidence } from './evidence.ts';
import type { BuyerLimits } from './offer.ts';
import { type BuyerWallet, newPayment } from './payment.ts';
import type { Answer } from './present.ts';
import { PurchaseError } from './purchase-error.ts';
import { type Item, type LoopDeps, type PurchaseResult, purchaseItems } from './purchase-loop.ts';
import { checkedTarget } from './target-check.ts';

type PurchaseDeps = LoopDeps & { readonly primitives: Primitives };

export type Order = {
  /** Origin of the relay. */
  readonly relay: string;
  /** Body of the execution, as the route takes it. */
  readonly request: WebhookRequest;
  readonly limits: BuyerLimits;
  /** null: compare the offer only, do not pay. */
  readonly payer: BuyerWallet | null;
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
  /** The buyer wants the answer of the target, which the relay returns in its first answer alone. */
  readonly returnResponse?: boolean;
};

export type CallResult = PurchaseResult<'delivered' | 'target_failed'> & {
  readonly evidence: PurchaseEvidence | null;
};

const PATH = '/api/execute/webhook';
const GUIDED_PATH = '/api/execute/guided-webhook';

/** Throws `OperatorError` for what the buyer has to mend; what the relay answers is part of the result. */
export async function purchase(deps: PurchaseDeps, order: Order): Promise<CallResult> {
  const { relay, request: action, payer, decisionId, acceptDemo = false } = order;
  const { request, target } = readOrder(order);
  const { idempotencyKey } = request;
  let keys: readonly KeyRecord[] = [];
  let evidence: PurchaseEvidence | null = null;
  let outcome: 'delivered' | 'target_failed' = 'delivered';
  const address = payer?.address ?? null;
  const item: Item = {
    url: `${relay}${decisionId === undefined ? PATH : GUIDED_PATH}`,
    text: JSON.stringify(decisionId === undefined ? action : { decisionId, action }),
    ...(order.returnResponse && { headers: { prefer: 'return=representation' } }),
    asks: ['{}'],
    name:
      address === null || idempotencyKey === null
        ? null
        : { relay, payer: address, idempotencyKey, request: JSON.stringify(request) },
    targetHost: target.hostname,
    limits: order.limits,
    accept: (required) => (wallet) => newPayment(wallet, required, deps.clock),
    async ready() {
      keys = demandKeys(order.keys ?? (await publishedKeys(deps, relay)));
    },
    acceptDemo,
    expected: 'an execution, 200 or 502',
    async confirm(answer, { payment, signedAtMs }) {
      const checked = await checkExecution(deps.primitives, answer, {
        relay,
        request,
        decisionId: decisionId ?? null,
        target,
        payment,
        signedAtMs,
        nowMs: deps.clock.now(),
        keys: await keysFor(deps, order, keys, answer),
        mayBeEarlier: order.repeatable && deps.ledger === null,
        returnResponse: order.returnResponse ?? false,
      });
      const mismatch = 'member' in checked ? checked : checked.mismatches[0];
      evidence = 'member' in checked ? null : checked;
      if (mismatch !== undefined) throw new PurchaseError(mismatch, { outcome: 'unverified' });
      outcome = answer.status === 200 ? 'delivered' : 'target_failed';
    },
  };
  async function* items() {
    yield item;
  }
  const result = await purchaseItems(deps, { relay, request: action, payer, items }, () => outcome);
  return { ...result, evidence };
}

/** Throws `OperatorError` for an order that every relay refuses. */
function readOrder({ request }: Order) {
  const target = checkedTarget(request, JSON.stringify(request));
  const { min, max } = LIMITS.idempotencyKeyLength;
  const length = request.idempotencyKey?.length ?? min;
  if (length < min || length > max)
    throw new OperatorError(`The idempotency key must have ${min} to ${max} characters.`);
  return { target, request: normaliseRequest(request, target.href) };
}

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
