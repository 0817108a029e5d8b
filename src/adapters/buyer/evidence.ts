// Evidence of a purchase: the receipt verifies offline, is bound to this payment and this request, and the relay signed a
// payment receipt for the delivery.
import { x402Client, x402HTTPClient } from '@x402/core/client';
import {
  isJWSSignedReceipt,
  OFFER_RECEIPT,
  type SignedReceipt,
  verifyReceiptSignatureJWS,
} from '@x402/extensions/offer-receipt';
import { sha256, toHex, utf8 } from '#src/domain/encoding.ts';
import type { PaymentFacts } from '#src/domain/event-fields.ts';
import { openDisclosures } from '#src/domain/receipt/disclosures.ts';
import { payloadOf, type ReceiptPayload } from '#src/domain/receipt/payload.ts';
import type { Primitives, VerificationReport } from '#src/domain/receipt/report.ts';
import { verifyReceipt } from '#src/domain/receipt/verify.ts';
import { type OfferSigner, type Terms, verifiedJws } from './offer.ts';

/** One claim, compared with what was received. */
export type Fact = { readonly name: string; readonly ok: boolean; readonly words: string };

const fact = (name: string, ok: boolean, words: string): Fact => ({ name, ok, words });

export type Answer = { readonly status: number; readonly headers: Headers; readonly body: string };

export type Settlement = {
  readonly success: boolean;
  readonly network: string;
  readonly payer: string | null;
  /** null: settled, but unknown to the relay. */
  readonly transaction: string | null;
  /** The signed payment receipt; null if there is none. */
  readonly receipt: SignedReceipt | null;
};

/** Who paid, in which transaction (PAYMENT-RESPONSE); null if it is missing or unreadable. */
function readSettlement(headers: Headers): Settlement | null {
  try {
    const { success, network, payer, transaction, extensions } = new x402HTTPClient(
      new x402Client(),
    ).getPaymentSettleResponse((name) => headers.get(name));
    const extension = extensions?.[OFFER_RECEIPT] as { info?: { receipt?: SignedReceipt } } | undefined;
    return {
      success,
      network,
      payer: payer ?? null,
      transaction: transaction === '' ? null : transaction,
      receipt: extension?.info?.receipt ?? null,
    };
  } catch {
    return null;
  }
}

/** The members of an execution response that a buyer checks. */
type PaidExecution = {
  readonly idempotentReplay: boolean;
  readonly job: {
    readonly id: string;
    readonly status: string;
    readonly attempts: number;
    readonly responseStatus: number | null;
    readonly errorCategory: string | null;
    readonly completedAt: string;
  };
  readonly receipt: { readonly id: string; readonly keyId: string; readonly jws: string };
  readonly disclosures: readonly string[];
  /** A C2SP signed note; null if the relay has none yet. */
  readonly checkpoint: string | null;
  readonly links: Readonly<Record<string, string>>;
};

export type Evidence = {
  readonly ok: boolean;
  readonly execution: PaidExecution;
  readonly settlement: Settlement | null;
  /** The payment in the signed receipt. */
  readonly receiptPayment: PaymentFacts | null;
  /** The offline report, from the receipt and the published keys only. */
  readonly verification: VerificationReport;
  readonly facts: readonly Fact[];
};

type ExpectedPurchase = {
  readonly url: string;
  readonly request: { readonly url: string; readonly body?: unknown };
  readonly terms: Terms;
  /** Lower case. */
  readonly payer: string;
  readonly by: OfferSigner;
};

/** Throws if the answer is not an execution response. */
export async function checkExecution(
  primitives: Primitives,
  answer: Answer,
  agreed: ExpectedPurchase,
): Promise<Evidence> {
  const execution = readExecution(JSON.parse(answer.body));
  const { job, receipt } = execution;
  const settlement = readSettlement(answer.headers);
  const facts = {
    jws: receipt.jws,
    receiptId: receipt.id,
    jobId: job.id,
    keys: agreed.by.keys,
    job: null,
    log: null,
  };
  const verification = await verifyReceipt(facts, primitives);
  const signed = payloadOf(receipt.jws);
  const all = [
    fact(
      'receipt_verified_offline',
      verification.ok,
      'the receipt verifies offline, with the published keys',
    ),
    paymentNamed(signed, settlement, agreed),
    settled(settlement, agreed),
    requestBound(signed, execution, agreed),
    // A failed target is paid for too, but a payment receipt is signed for a delivery only.
    ...(answer.status === 200 ? [await paymentReceiptSigned(settlement, execution, agreed)] : []),
  ];
  const ok = all.every((each) => each.ok);
  return { ok, execution, settlement, receiptPayment: signed?.payment ?? null, verification, facts: all };
}

function readExecution(body: Readonly<Record<string, unknown>>): PaidExecution {
  const { job, receipt, disclosures, links } = body as Partial<PaidExecution>;
  const readable =
    typeof job?.id === 'string' &&
    typeof job.completedAt === 'string' &&
    typeof receipt?.id === 'string' &&
    typeof receipt.jws === 'string' &&
    Array.isArray(disclosures) &&
    typeof links === 'object';
  if (!readable)
    throw new Error('the answer of the relay is not an execution response; the payment may be spent');
  return body as unknown as PaidExecution;
}

function paymentNamed(
  signed: ReceiptPayload | null,
  settlement: Settlement | null,
  agreed: ExpectedPurchase,
): Fact {
  const name = 'receipt_names_payment';
  const { terms, payer } = agreed;
  const { scheme, network, asset, amount, payTo } = terms;
  const expected = { scheme, network, asset, amount, payTo, payer };
  const named = signed?.payment ?? null;
  const differs = Object.entries(expected).filter(
    ([member, value]) => named?.[member as keyof typeof expected]?.toLowerCase() !== value.toLowerCase(),
  );
  if (named !== null && (settlement === null || named.transaction !== settlement.transaction))
    differs.push(['transaction', '']);
  const words = 'the receipt names this payment: payer, payee, amount, asset, network, transaction';
  if (differs.length === 0) return fact(name, true, words);
  return fact(name, false, `the receipt names another ${differs.map(([member]) => member).join(', ')}`);
}

function settled(settlement: Settlement | null, { terms, payer }: ExpectedPurchase): Fact {
  const ok =
    settlement?.success === true &&
    settlement.network === terms.network &&
    settlement.payer?.toLowerCase() === payer;
  return fact('payment_settled', ok, 'the payment header of the relay states that this payment is settled');
}

/** The relay signed that this payer paid for this resource in this transaction. */
async function paymentReceiptSigned(
  settlement: Settlement | null,
  { job }: PaidExecution,
  { url, terms, payer, by }: ExpectedPurchase,
): Promise<Fact> {
  const problem = await problemOf();
  return fact(
    'payment_receipt_signed',
    problem === null,
    problem === null
      ? 'the relay signed a payment receipt for this delivery'
      : `the signed payment receipt: ${problem}`,
  );

  async function problemOf(): Promise<string | null> {
    if (settlement === null) return 'the payment header is missing';
    const { receipt, transaction } = settlement;
    if (receipt === null) return 'it is missing';
    const jws = isJWSSignedReceipt(receipt) ? receipt : null;
    const verified = await verifiedJws(jws, by, Date.parse(job.completedAt), verifyReceiptSignatureJWS);
    if ('problem' in verified) return verified.problem;
    const signed = verified.payload;
    const differs = [
      ['resource', signed.resourceUrl, url],
      ['network', signed.network, terms.network],
      ['payer', String(signed.payer).toLowerCase(), payer],
      ['transaction', signed.transaction || null, transaction],
    ].flatMap(([name, actual, expected]) => (actual === expected ? [] : [name]));
    return differs.length === 0 ? null : `it names another ${differs.join(', ')}`;
  }
}

/** The disclosures open commitments of the receipt to this URL and this body. */
function requestBound(
  signed: ReceiptPayload | null,
  { disclosures }: PaidExecution,
  { request }: ExpectedPurchase,
): Fact {
  const body = request.body === undefined ? '' : JSON.stringify(request.body);
  const url = new URL(request.url);
  url.hash = '';
  const opened = signed === null ? [] : openDisclosures(signed, disclosures);
  const opens = (name: string, value: string) =>
    opened.some((one) => one.ok && one.name === name && one.value === value);
  const ok = opens('target_url', url.href) && opens('request_body_sha256', toHex(sha256(utf8(body))));
  return fact('receipt_binds_request', ok, 'the receipt is bound to this URL and body');
}
