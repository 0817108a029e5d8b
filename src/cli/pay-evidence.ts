// What a buyer can check of what came: the receipt offline, that it names this payment and this request, and the
// relay's signed word on the payment.

import {
  type PaymentHeader,
  type Presented,
  paymentReceiptProblem,
  readSettlement,
  type Settlement,
  type Terms,
} from '#src/app/buyer.ts';
import { type Fact, fact } from '#src/demo/facts.ts';
import { fromBase64url, fromUtf8, sha256, toBase64url, toHex, utf8 } from '#src/domain/encoding.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import type { PaymentFacts } from '../domain/event-fields.ts';
import { payloadOf, type ReceiptPayload } from '../domain/receipt/payload.ts';
import { type Primitives, type VerificationReport, verifyReceipt } from '../domain/receipt/verify.ts';
import { FoundWrong } from './exit.ts';

/** The members of an execution response that a buyer looks at. */
export type PaidExecution = {
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
  readonly links: Readonly<Record<string, string>>;
};

export type Evidence = {
  readonly ok: boolean;
  readonly execution: PaidExecution;
  readonly settlement: Settlement | null;
  /** Payment as the receipt's signature covers it. */
  readonly receiptPayment: PaymentFacts | null;
  /** The offline report, by the receipt and the published keys alone. */
  readonly verification: VerificationReport;
  readonly facts: readonly Fact[];
};

export type Agreed = {
  readonly url: string;
  readonly request: { readonly url: string; readonly body?: unknown };
  readonly terms: Terms;
  readonly payment: Pick<PaymentHeader, 'payer'>;
  readonly by: { readonly did: string; readonly keys: readonly KeyRecord[] };
};

/** Throws `FoundWrong` for an answer that is no execution response. */
export async function judgeExecution(
  primitives: Primitives,
  presented: Extract<Presented, { kind: 'executed' }>,
  agreed: Agreed,
): Promise<Evidence> {
  const { answer } = presented;
  const execution = readExecution(presented.execution);
  const { job, receipt } = execution;
  const settlement = readSettlement(answer.header);
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
    fact('receipt_verified_offline', verification.ok, 'the receipt verifies offline, by the published keys'),
    paymentNamed(signed, settlement, agreed),
    settled(settlement, agreed),
    requestBound(signed, execution, agreed),
    // A failed target is paid for too, and the signed word is given for delivery alone.
    ...(answer.status === 200 ? [await paymentReceiptFact(settlement, execution, agreed)] : []),
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
    throw new FoundWrong('the relay’s answer is no execution response; the payment may be spent');
  return body as unknown as PaidExecution;
}

function paymentNamed(signed: ReceiptPayload | null, settlement: Settlement | null, agreed: Agreed): Fact {
  const name = 'receipt_names_payment';
  const { terms, payment } = agreed;
  const { scheme, network, asset, amount, payTo } = terms;
  const expected = { scheme, network, asset, amount, payTo, payer: payment.payer };
  const told = signed?.payment ?? null;
  const differs = Object.entries(expected).filter(
    ([member, value]) => told?.[member as keyof typeof expected]?.toLowerCase() !== value.toLowerCase(),
  );
  if (told !== null && (settlement === null || told.transaction !== settlement.transaction))
    differs.push(['transaction', '']);
  const words = 'the receipt names this payment: payer, payee, amount, asset, network, transaction';
  if (differs.length === 0) return fact(name, true, words);
  return fact(name, false, `the receipt names another ${differs.map(([member]) => member).join(', ')}`);
}

function settled(settlement: Settlement | null, { terms, payment }: Agreed): Fact {
  const ok =
    settlement?.success === true &&
    settlement.network === terms.network &&
    settlement.payer?.toLowerCase() === payment.payer;
  return fact('payment_settled', ok, 'the relay’s payment header says that this payer’s payment is settled');
}

async function paymentReceiptFact(
  settlement: Settlement | null,
  { job }: PaidExecution,
  { url, terms, payment, by }: Agreed,
): Promise<Fact> {
  const name = 'payment_receipt_signed';
  const paid = {
    resourceUrl: url,
    network: terms.network,
    payer: payment.payer,
    completedMs: Date.parse(job.completedAt),
  };
  const problem =
    settlement === null ? 'there is no payment header' : await paymentReceiptProblem(settlement, paid, by);
  if (problem === null) return fact(name, true, 'the relay has signed that this payment was delivered for');
  return fact(name, false, `the signed payment receipt: ${problem}`);
}

/** The salted commitments of the receipt, opened: it is bound to this URL and this body. */
function requestBound(
  signed: ReceiptPayload | null,
  { disclosures }: PaidExecution,
  { request }: Agreed,
): Fact {
  const body = request.body === undefined ? new Uint8Array(0) : utf8(JSON.stringify(request.body));
  const url = new URL(request.url);
  url.hash = '';
  const expected: Readonly<Record<string, string>> = {
    target_url: url.href,
    request_body_sha256: toHex(sha256(body)),
  };
  const opened = new Set<string>();
  for (const text of disclosures) {
    const [name = '', value] = disclosed(text);
    const commitment = toBase64url(sha256(utf8(text)));
    if (expected[name] === value && signed?.request._sd.includes(commitment)) opened.add(name);
  }
  const ok = Object.keys(expected).every((name) => opened.has(name));
  return fact('receipt_binds_request', ok, 'the receipt is bound to this very URL and body');
}

function disclosed(text: string): readonly [name?: string, value?: unknown] {
  try {
    const [, name, value] = JSON.parse(fromUtf8(fromBase64url(text) ?? new Uint8Array(0)) ?? '');
    return [String(name), value];
  } catch {
    return [];
  }
}
