// The one loop of every order, of a call or of the runs of a schedule. For each payment, the relay's 402 is compared with the
// buyer's limits before anything is signed; one payment is signed and presented until the relay gives a final answer.
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { microUsd } from '#src/domain/payment/price.ts';
import type { LedgerOrder, LedgerRecord, PurchaseLedger } from './ledger.ts';
import {
  type BuyerLimits,
  judgeOffer,
  microUsdOf,
  type OfferFinding,
  type OfferTerms,
  type RelayOffer,
  readOffer,
  type ToSign,
} from './offer.ts';
import { type BuyerPayment, type BuyerWallet, samePayment } from './payment.ts';
import { type Answer, describe, type PresentDeps, present, reached, type Send } from './present.ts';
import { type PurchaseEnd, PurchaseError } from './purchase-error.ts';
import { demandAllowedTarget } from './target-check.ts';

export type LoopDeps = PresentDeps & {
  /** null: nothing is recorded, and the day's sum is not limited. */
  readonly ledger: PurchaseLedger | null;
};

/** One payment of an order, and what it buys. */
export type Item = {
  readonly url: string;
  /** JSON that is sent with the payment. */
  readonly text: string;
  /** That are sent with it. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What is sent without a payment, one after the other: the last 402 is the offer. */
  readonly asks: readonly string[];
  /** null: the payment is not recorded. */
  readonly name: LedgerOrder | null;
  readonly targetHost: string;
  readonly limits: BuyerLimits;
  /** Compares what is particular to the offer, and returns how it is signed. Throws `PurchaseError`. */
  readonly accept: (required: ToSign, answer: Answer) => (payer: BuyerWallet) => Promise<BuyerPayment>;
  /** The last step before a payment is signed or presented. Throws `PurchaseError`. */
  readonly ready?: () => Promise<void>;
  /** A relay in demo mode, which asks for no payment, may do it. */
  readonly acceptDemo?: boolean;
  readonly isResult?: (answer: Answer) => boolean;
  /** What an answer should be. */
  readonly expected: string;
  /** Throws `PurchaseError` for a result that is not what was ordered. */
  readonly confirm: (answer: Answer, made: MadePayment) => Promise<void>;
  /** A recorded payment that the relay refuses has no use any more: the order continues. */
  readonly isOver?: (payment: BuyerPayment) => boolean;
};

/** `payment` null: in demo mode. `signedAtMs`: Unix ms. */
export type MadePayment = { readonly payment: BuyerPayment | null; readonly signedAtMs: number };

/** What has happened in an order so far. */
export type PurchaseProgress = {
  /** Of the last offer that was compared with the limits; accepted if all findings are good. */
  terms: OfferTerms | null;
  policy: readonly OfferFinding[];
  /** The last one. */
  payment: BuyerPayment | null;
  /** Every payment that was signed for the order: millionths of a US dollar. */
  signedMicroUsd: bigint;
};

export type PurchaseResult<Success extends string> = Readonly<PurchaseProgress> & {
  readonly outcome: Success | 'not_paid' | PurchaseEnd['outcome'];
  /** Why it is not a verified purchase; null if it is one, or if nothing was to be paid. */
  readonly error: PurchaseError | null;
  readonly relay: string;
  /** Of a relay that refused. */
  readonly problem: PurchaseEnd['problem'];
};

type LoopOrder = {
  /** Origin. */
  readonly relay: string;
  readonly request: WebhookRequest;
  /** null: compare the first offer only, do not pay. */
  readonly payer: BuyerWallet | null;
  /** What is found out once, before the relay is asked for its first offer. */
  readonly plan?: () => Promise<void>;
  /** Each is made when the one before is confirmed. */
  readonly items: (made: PurchaseProgress) => AsyncIterable<Item>;
};

/** Throws `OperatorError` for what the buyer has to mend; what the relay answers is part of the result. */
export async function purchaseItems<Success extends string>(
  deps: LoopDeps,
  order: LoopOrder,
  success: () => Success,
): Promise<PurchaseResult<Success>> {
  const made: PurchaseProgress = { terms: null, policy: [], payment: null, signedMicroUsd: 0n };
  const { relay, request, payer, plan } = order;
  let isPlanned = false;
  async function planOnce(): Promise<void> {
    if (isPlanned) return;
    if (payer !== null) await demandAllowedTarget(deps, relay, request);
    await plan?.();
    isPlanned = true;
  }
  const ended = (outcome: PurchaseResult<Success>['outcome'], error: PurchaseError | null = null) => {
    return { ...made, outcome, error, relay, problem: error?.problem ?? null };
  };
  try {
    for await (const item of order.items(made))
      if (!(await purchaseItem(deps, payer, item, made, planOnce))) return ended('not_paid');
    return ended(success());
  } catch (error) {
    if (error instanceof PurchaseError) return ended(error.outcome, error);
    throw error;
  }
}

/** False in a dry run. */
async function purchaseItem(
  deps: LoopDeps,
  payer: BuyerWallet | null,
  item: Item,
  made: PurchaseProgress,
  planOnce: () => Promise<void>,
): Promise<boolean> {
  const { name } = item;
  const record = name === null ? null : ((await deps.ledger?.find(name)) ?? null);
  if (record === null) await planOnce();
  const asked = record === null ? await askOffer(deps, item, made, payer !== null) : null;
  if (asked === 'demo') {
    await item.ready?.();
    await deliver(deps, item, { payment: null, signedAtMs: deps.clock.now(), isRecorded: false });
    return true;
  }
  const required = acceptedTerms(asked?.offer ?? offerOf(record, item), item, made, payer === null);
  const sign = asked && item.accept(required, asked.answer);
  if (payer === null) return false;
  await item.ready?.();
  const signed = await signOnce(deps, payer, required, item, record, sign);
  made.payment = signed.payment;
  made.signedMicroUsd += signed.priceMicroUsd;
  await deliver(deps, item, signed);
  return true;
}

/**
 * The relay's 402; `demo` if none is needed. Asked again only while the relay is busy or unavailable: whatever else it answers,
 * nothing is ordered twice. The first request has no body: a relay that asks for no payment must not execute the order.
 */
async function askOffer(
  deps: LoopDeps,
  { url, asks, acceptDemo }: Item,
  { signedMicroUsd }: PurchaseProgress,
  isPaying: boolean,
) {
  const isFinal = ({ status }: Answer) => status < 500 && status !== 408 && status !== 429;
  // Before the first payment a relay that cannot be reached is the buyer's to mend.
  const send: Send = signedMicroUsd === 0n ? (request) => reached(deps.send, request) : deps.send;
  let offered: { readonly offer: RelayOffer; readonly answer: Answer } | null = null;
  for (const text of asks) {
    const asked = await present({ ...deps, send }, url, text, null, isFinal);
    if (asked.kind !== 'executed') throw notOffered(asked.kind === 'refused' ? asked.actual : asked.last);
    const { answer } = asked;
    if (answer.status === 400 && acceptDemo && isPaying) return 'demo';
    if (answer.status !== 402) throw notOffered(describe(answer));
    const offer = readOffer(answer.headers);
    if (offer === null) throw notOffered('none that are readable');
    offered = { offer, answer };
  }
  if (offered === null) throw new Error('an offer is asked for');
  return offered;
}

const notOffered = (actual: string): PurchaseError =>
  new PurchaseError({ member: 'offer', expected: '402 with payment requirements of x402 version 2', actual });

function offerOf(record: LedgerRecord | null, { url }: Item): RelayOffer {
  return { x402Version: 2, resource: { url }, accepts: record === null ? [] : [record.terms] };
}

/** Throws `PurchaseError` if the offer is not within the limits. */
function acceptedTerms(
  offer: RelayOffer,
  { url, targetHost, limits }: Item,
  made: PurchaseProgress,
  isDryRun: boolean,
): ToSign {
  const { required, findings } = judgeOffer(offer, limits, { resourceUrl: url, targetHost });
  made.terms = required?.accepts[0] ?? null;
  made.policy = findings;
  // Nothing is signed in a dry run: it needs no payee.
  const needless = isDryRun && limits.payTo === null ? 'pay_to' : null;
  const bad = findings.find(({ ok, name }) => !ok && name !== needless);
  if (bad !== undefined)
    throw new PurchaseError({ member: `offer.${bad.name}`, expected: bad.expected, actual: bad.offered });
  if (required === null) throw notOffered('none that are readable');
  return required;
}

type Signed = { readonly payment: BuyerPayment; readonly signedAtMs: number; readonly isRecorded: boolean };

/** The recorded payment if there is one, else a new one, recorded before it is returned. */
async function signOnce(
  { ledger, clock }: LoopDeps,
  payer: BuyerWallet,
  required: ToSign,
  { name }: Item,
  record: LedgerRecord | null,
  sign: ((payer: BuyerWallet) => Promise<BuyerPayment>) | null,
): Promise<Signed & { readonly priceMicroUsd: bigint }> {
  const again = async (recorded: LedgerRecord) => ({
    payment: await samePayment(payer, { ...required, accepts: [recorded.terms] }, recorded),
    signedAtMs: Date.parse(recorded.at),
    isRecorded: true,
    priceMicroUsd: microUsd(recorded.usd) ?? 0n,
  });
  if (record !== null) return again(record);
  if (sign === null) throw new Error('an order without a recorded payment has an offer');
  const priceMicroUsd = microUsdOf(required.accepts[0]) ?? 0n;
  const facts = { signedAtMs: clock.now(), isRecorded: false, priceMicroUsd };
  if (ledger === null || name === null) return { payment: await sign(payer), ...facts };
  const claimed = await ledger.claim(name, priceMicroUsd, () => sign(payer));
  return claimed.kind === 'recorded' ? again(claimed.record) : { payment: claimed.payment, ...facts };
}

/** Presents the payment, and checks the answer. Throws `PurchaseError`. */
async function deliver(
  deps: LoopDeps,
  item: Item,
  { isRecorded, ...made }: MadePayment & Pick<Signed, 'isRecorded'>,
): Promise<void> {
  const { payment } = made;
  const presented = await present(
    deps,
    item.url,
    item.text,
    payment?.header ?? null,
    item.isResult,
    item.headers,
  );
  if (presented.kind === 'executed') return item.confirm(presented.answer, made);
  const actual = presented.kind === 'refused' ? presented.actual : presented.last;
  const refusal = { member: 'answer', expected: item.expected, actual };
  if (presented.kind === 'unfinished') throw new PurchaseError(refusal, { outcome: 'unfinished' });
  if (payment !== null && isRecorded && item.isOver?.(payment)) return;
  throw new PurchaseError(refusal, { outcome: 'relay_refused', problem: presented.problem });
}
