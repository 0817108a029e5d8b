// Evidence of a purchase: the receipt verifies offline, and is bound to this payment and this request.
import type { PaymentRequirements } from '@x402/core/types';
import { x402Client, x402HTTPClient } from '@x402/fetch';
import { sha256, toHex, utf8 } from '#src/domain/encoding.ts';
import type { PaymentFacts } from '#src/domain/event-fields.ts';
import { openDisclosures } from '#src/domain/receipt/disclosures.ts';
import { payloadOf, type ReceiptPayload } from '#src/domain/receipt/payload.ts';
import type { Primitives, VerificationReport } from '#src/domain/receipt/report.ts';
import { verifyReceipt } from '#src/domain/receipt/verify.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';

/** One claim, compared with what was received. */
export type Fact = { readonly name: string; readonly ok: boolean; readonly words: string };

const fact = (name: string, ok: boolean, words: string): Fact => ({ name, ok, words });

export type Answer = { readonly status: number; readonly headers: Headers; readonly body: string };

/** `transaction` null: settled, but unknown to the relay. */
export type Settlement = { readonly payer: string | null; readonly transaction: string | null };

/** Who paid, in which transaction (PAYMENT-RESPONSE); null if it is missing or unreadable, or states no success. */
function readSettlement(headers: Headers): Settlement | null {
  try {
    const http = new x402HTTPClient(new x402Client());
    const { success, payer, transaction } = http.getPaymentSettleResponse((name) => headers.get(name));
    return success ? { payer: payer ?? null, transaction: transaction || null } : null;
  } catch {
    return null;
  }
}

/** The members of an execution response that a buyer reads. */
export type Execution = {
  readonly idempotentReplay: boolean;
  readonly job: {
    readonly id: string;
    readonly status: string;
    readonly attempts: number;
    readonly responseStatus: number | null;
    readonly errorCategory: string | null;
  };
  readonly receipt: { readonly id: string; readonly keyId: string; readonly jws: string };
  readonly disclosures: readonly string[];
  /** A C2SP signed note; null if the relay has none yet. */
  readonly checkpoint: string | null;
  readonly links: Readonly<Record<string, string>>;
};

export type Evidence = {
  readonly ok: boolean;
  readonly execution: Execution;
  readonly settlement: Settlement | null;
  /** The offline report, from the receipt and the published keys only. */
  readonly verification: VerificationReport;
  readonly facts: readonly Fact[];
};

type ExpectedPurchase = {
  readonly request: { readonly url: string; readonly body?: unknown };
  readonly terms: PaymentRequirements;
  /** Lower case. */
  readonly payer: string;
  /** The relay's published keys. */
  readonly keys: readonly KeyRecord[];
};

/** Throws if the answer is not an execution response. */
export async function checkExecution(
  primitives: Primitives,
  answer: Answer,
  agreed: ExpectedPurchase,
): Promise<Evidence> {
  const execution = readExecution(JSON.parse(answer.body));
  const { job, receipt, disclosures } = execution;
  const settlement = readSettlement(answer.headers);
  const named = { jws: receipt.jws, receiptId: receipt.id, jobId: job.id };
  const verification = await verifyReceipt({ ...named, keys: agreed.keys, job: null, log: null }, primitives);
  const signed = payloadOf(receipt.jws);
  const facts = [
    fact(
      'receipt_verified_offline',
      verification.ok,
      'the receipt verifies offline, with the published keys',
    ),
    paymentNamed(signed?.payment ?? null, settlement, agreed),
    requestBound(signed, disclosures, agreed),
  ];
  const ok = facts.every((each) => each.ok);
  return { ok, execution, settlement, verification, facts };
}

function readExecution(body: Readonly<Record<string, unknown>>): Execution {
  const { job, receipt, disclosures, links } = body as Partial<Execution>;
  const readable =
    typeof job?.id === 'string' &&
    typeof receipt?.id === 'string' &&
    typeof receipt.jws === 'string' &&
    Array.isArray(disclosures) &&
    typeof links === 'object';
  if (!readable)
    throw new Error('the answer of the relay is not an execution response; the payment may be spent');
  return body as unknown as Execution;
}

/** The transaction is compared with the one in the payment header of the answer. */
function paymentNamed(
  named: PaymentFacts | null,
  settlement: Settlement | null,
  { terms: { scheme, network, asset, amount, payTo }, payer }: ExpectedPurchase,
): Fact {
  const name = 'receipt_names_payment';
  const expected = { scheme, network, asset, amount, payTo, payer };
  const differs = Object.entries(expected)
    .filter(([member, value]) => !sameText(named?.[member as keyof typeof expected], value))
    .map(([member]) => member);
  if (settlement === null || !sameText(settlement.payer, payer)) differs.push('payer in the payment header');
  if (settlement?.transaction !== named?.transaction) differs.push('transaction');
  const words = 'the receipt names this payment: payer, payee, amount, asset, network, transaction';
  return differs.length === 0
    ? fact(name, true, words)
    : fact(name, false, `the receipt names another ${differs.join(', ')}`);
}

const sameText = (a: string | null | undefined, b: string): boolean => a?.toLowerCase() === b.toLowerCase();

/** The disclosures open commitments of the receipt to this URL and this body. */
function requestBound(
  signed: ReceiptPayload | null,
  disclosures: readonly string[],
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
