// Compares an execution response with the order, the payment and the receipt in it: whether it is the buyer's own purchase.
// The receipt verifies offline; every other member is compared with what it states, or with what was ordered.

import { type Static, Type } from '@sinclair/typebox';
import { x402Client, x402HTTPClient } from '@x402/fetch';
import { parsedJson } from '#src/domain/canonical-json.ts';
import type { Target } from '#src/domain/destination/url.ts';
import { sha256, toHex, utf8 } from '#src/domain/encoding.ts';
import { Nullable } from '#src/domain/event-fields.ts';
import type { NormalRequest } from '#src/domain/job/webhook-request.ts';
import type { OpenedDisclosure } from '#src/domain/receipt/disclosures.ts';
import { type ReceiptReport, receiptDocumentOf, verifyDocument } from '#src/domain/receipt/document.ts';
import { logOf, type ReceiptPayload } from '#src/domain/receipt/payload.ts';
import type { Check, VerificationReport } from '#src/domain/receipt/report.ts';
import { shapeCheck } from '#src/domain/shape-check.ts';
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import { verifySignedCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { isObject } from '#src/lib/is-object.ts';
import type { BuyerPayment } from './payment.ts';
import type { Answer } from './present.ts';
import { compare, type Mismatch } from './purchase-error.ts';
import { faultsOfResponse, type ReturnedResponse, readResponse } from './returned-response.ts';

/** The members of an execution response that a buyer reads. `checkpoint`: a C2SP signed note. */
const MEMBERS = {
  mode: Type.String(),
  idempotentReplay: Type.Boolean(),
  job: Type.Object({
    id: Type.String(),
    status: Type.String(),
    attempts: Type.Integer(),
    decisionId: Nullable(Type.String()),
    responseStatus: Nullable(Type.Integer()),
    errorCategory: Nullable(Type.String()),
  }),
  receipt: Type.Object({
    id: Type.String(),
    keyId: Type.String(),
    jws: Type.String(),
    signature: Type.String(),
    replay: Type.Boolean(),
  }),
  payment: Nullable(
    Type.Object({
      network: Type.String(),
      asset: Type.String(),
      amount: Type.String(),
      payTo: Type.String(),
      payer: Type.String(),
      transaction: Nullable(Type.String()),
    }),
  ),
  disclosures: Type.Array(Type.String()),
  checkpoint: Nullable(Type.String()),
  links: Type.Record(Type.String(), Type.String()),
} as const;
export type PaidExecution = { readonly [M in keyof typeof MEMBERS]: Static<(typeof MEMBERS)[M]> };

const CHECKS = Object.entries(MEMBERS).map(([name, schema]) => ({ name, isReadable: shapeCheck(schema) }));

/** The execution response, or the first member that is missing or has another form. */
function readExecution(body: unknown): { readonly execution: PaidExecution } | Mismatch {
  const members = isObject(body) ? body : {};
  const bad = CHECKS.find(({ name, isReadable }) => !isReadable(members[name]));
  if (bad === undefined) return { execution: members as unknown as PaidExecution };
  const actual = members[bad.name] === undefined ? 'none' : 'another form';
  return { member: bad.name, expected: 'as in an execution response', actual };
}

/** One claim, compared with what was received. */
export type Fact = { readonly name: string; readonly ok: boolean; readonly words: string };

/** `transaction` null: settled, but unknown to the relay. */
export type PaymentResult = { readonly payer: string | null; readonly transaction: string | null };

export type PurchaseEvidence = {
  readonly ok: boolean;
  readonly execution: PaidExecution;
  readonly settlement: PaymentResult | null;
  /** The offline report, from the receipt and the relay's keys only. */
  readonly verification: VerificationReport;
  readonly facts: readonly Fact[];
  /** Empty if `ok`. */
  readonly mismatches: readonly Mismatch[];
  /** What the target answered, as the receipt commits to it; null: not asked for, not verified, or not returned. */
  readonly response: ReturnedResponse | null;
  /** The receipt is of an earlier payment of this wallet with the same idempotency key: this one was not needed. */
  readonly earlierPayment: boolean;
};

export type ExpectedPurchase = {
  /** Origin. */
  readonly relay: string;
  readonly request: NormalRequest;
  /** Of a guided execution. */
  readonly decisionId: string | null;
  readonly target: Pick<Target, 'href' | 'origin'>;
  /** null: a relay in demo mode was accepted, and nothing was paid. */
  readonly payment: BuyerPayment | null;
  /** Unix ms. */
  readonly signedAtMs: number;
  readonly nowMs: number;
  /** The relay's pinned or published keys. */
  readonly keys: readonly KeyRecord[];
  /** The buyer chose the idempotency key and has no record of a payment with it: an earlier one may have bought the job. */
  readonly mayBeEarlier: boolean;
  /** The answer of the target was asked for. Otherwise it is ignored. */
  readonly returnResponse: boolean;
};

/** A relay accepts an authorization only if the clocks differ by less: a receipt may be dated by another clock. */
const CLOCK_TOLERANCE_SECONDS = 180;

/** Returns a mismatch if the answer is not an execution response. */
export async function checkExecution(
  primitives: Primitives,
  { status, headers, body }: Answer,
  expected: ExpectedPurchase,
): Promise<PurchaseEvidence | Mismatch> {
  const read = readExecution(parsedJson(body));
  if (!('execution' in read)) return read;
  const { execution } = read;
  if (expected.payment !== null && execution.payment === null)
    return { member: 'payment', expected: 'as in an execution response', actual: 'none' };
  const { disclosures } = execution;
  const { keys } = expected;
  const document = receiptDocumentOf(execution);
  const facts = { keys, log: null, receiptId: null, jobId: null, disclosures };
  const report = await verifyDocument(document, facts, primitives);
  const { problem: _problem, payload, differences: _differences, opened, ...verification } = report;
  const settlement = readSettlement(headers);
  const receiptFaults = faultsOfReceipt(report);
  if (payload === null || receiptFaults.length > 0) {
    const fact = groupOf('receipt_verified_offline', WORDS.receipt_verified_offline, receiptFaults);
    const more = {
      ok: false,
      execution,
      settlement,
      facts: [fact],
      mismatches: receiptFaults,
      response: null,
    };
    return { ...more, verification, earlierPayment: false };
  }
  const earlierPayment =
    expected.mayBeEarlier &&
    execution.idempotentReplay &&
    (expected.payment === null || payload.payment?.payloadHash !== expected.payment.payloadHash);
  const checkpoint = await faultsOfCheckpoint(execution, payload, keys, primitives);
  const response = expected.returnResponse ? readResponse(parsedJson(body)) : null;
  const mismatches = {
    receipt_verified_offline: checkpoint,
    receipt_names_payment: faultsOfPayment(payload, headers, expected, earlierPayment),
    receipt_binds_request: faultsOfRequest(payload, opened ?? [], expected),
    answer_matches_receipt: [
      ...faultsOfOutcome(payload, status),
      ...faultsOfText(report, execution),
      ...faultsOfTime(payload, expected, earlierPayment),
      ...faultsOfLinks(execution, expected.relay),
      ...(response === null ? [] : faultsOfResponse(response, payload, opened ?? [], execution)),
    ],
  };
  const all = Object.values(mismatches).flat();
  return {
    ok: all.length === 0,
    execution,
    settlement,
    verification,
    facts: FACTS.map((name) => groupOf(name, wordsOf(name, payload, expected), mismatches[name])),
    mismatches: all,
    response: all.length === 0 && response !== 'unreadable' ? response : null,
    earlierPayment,
  };
}

const WORDS = {
  receipt_verified_offline: "the receipt verifies offline, with the relay's keys",
  receipt_names_payment: 'the receipt names this payment: its hash, payer, payee, amount, asset, network',
  receipt_binds_request: 'the receipt is bound to this method, URL, header names, body and idempotency key',
  answer_matches_receipt: 'the answer reports what the receipt states: outcome, attempts, time',
} as const;
const FACTS = Object.keys(WORDS) as readonly (keyof typeof WORDS)[];

/** What is not known is named beside what is verified. */
function wordsOf(
  name: keyof typeof WORDS,
  { payment }: ReceiptPayload,
  { payment: expected }: ExpectedPurchase,
): string {
  const words = WORDS[name];
  if (name !== 'receipt_names_payment') return words;
  if (expected === null) return 'the receipt states that nothing was paid (demo mode)';
  const { authorization } = expected;
  return payment?.transaction === null
    ? `${words}; the relay does not know its transaction: the chain shows whether nonce ${authorization.nonce} is used`
    : `${words}, transaction`;
}

const groupOf = (name: string, words: string, faults: readonly Mismatch[]): Fact =>
  faults.length === 0
    ? { name, ok: true, words }
    : { name, ok: false, words: `not as expected: ${faults.map(({ member }) => member).join(', ')}` };

/** Checks of the receipt that fail; first the one that explains the others. */
const faultsOfReceipt = ({ checks, keyId }: ReceiptReport): readonly Mismatch[] =>
  checks
    .filter(({ ok }) => !ok)
    .sort((a, b) => Number(isCause(b)) - Number(isCause(a)))
    .map(({ name, details }) => ({
      member: `receipt.${name}`,
      expected: 'a receipt that verifies with the keys of the relay',
      actual: details === undefined ? `a receipt that names key ${keyId ?? 'none'}` : JSON.stringify(details),
    }));

/** Nothing of an unreadable payload holds. */
const isCause = ({ name }: Check): boolean => name === 'payload_version_supported';

async function faultsOfCheckpoint(
  { checkpoint }: PaidExecution,
  payload: ReceiptPayload,
  keys: readonly KeyRecord[],
  primitives: Primitives,
): Promise<readonly Mismatch[]> {
  if (checkpoint === null || !keys.some(({ purpose }) => purpose === 'checkpoint')) return [];
  const verified = await verifySignedCheckpoint(checkpoint, keys, primitives);
  const origin = logOf(payload)?.origin ?? verified?.origin;
  if (verified !== null && verified.origin === origin) return [];
  const actual = verified === null ? 'a note that does not verify' : `a checkpoint of ${verified.origin}`;
  return [
    { member: 'checkpoint', expected: `a checkpoint of ${origin ?? 'the relay'}, signed by it`, actual },
  ];
}

/**
 * The transaction is compared with the one in the payment header of the answer: where the relay does not know it, it is null
 * in the receipt and empty in the header.
 */
function faultsOfPayment(
  { payment: named, mode }: ReceiptPayload,
  headers: Headers,
  { payment: expected }: ExpectedPurchase,
  earlier: boolean,
): readonly Mismatch[] {
  if (expected === null)
    return [...compare('receipt.mode', 'demo', mode), ...compare('receipt.payment', null, named)];
  const { terms, authorization, payloadHash } = expected;
  if (named === null || mode !== 'x402')
    return [{ member: 'receipt.payment', expected: 'a payment', actual: 'none' }];
  const header = settlementOf(headers);
  const { scheme, network, asset, amount, payTo } = terms;
  const agreed = { payer: authorization.from, scheme, network, asset, amount, payTo };
  const members = Object.entries(agreed) as [keyof typeof agreed, string][];
  return [
    ...members.flatMap(([member, value]) =>
      compare(`receipt.payment.${member}`, value.toLowerCase(), named[member].toLowerCase()),
    ),
    ...(earlier ? [] : compare('receipt.payment.payloadHash', payloadHash, named.payloadHash)),
    ...(named.transaction === null || /^0x[0-9a-f]{64}$/i.test(named.transaction)
      ? []
      : compare('receipt.payment.transaction', '0x and 64 hex digits, or null', named.transaction)),
    ...compare('payment_response.success', true, header?.success),
    ...compare('payment_response.payer', authorization.from, header?.payer?.toLowerCase()),
    ...compare('payment_response.network', network, header?.network),
    ...compare('payment_response.transaction', named.transaction ?? '', header?.transaction),
  ];
}

const isSettlement = shapeCheck(
  Type.Object({
    success: Type.Boolean(),
    payer: Type.Optional(Type.String()),
    network: Type.String(),
    transaction: Type.String(),
  }),
);

/** PAYMENT-RESPONSE; null if it is missing or unreadable. */
function settlementOf(headers: Headers) {
  try {
    const http = new x402HTTPClient(new x402Client());
    const value: unknown = http.getPaymentSettleResponse((name) => headers.get(name));
    return isSettlement(value) ? value : null;
  } catch {
    return null;
  }
}

/** Who paid, in which transaction; null if the answer states no success. */
function readSettlement(headers: Headers): PaymentResult | null {
  const header = settlementOf(headers);
  return header?.success ? { payer: header.payer ?? null, transaction: header.transaction || null } : null;
}

/** The disclosures open commitments of the receipt to this request, and nothing else. */
function faultsOfRequest(
  { request: signed, decisionId }: ReceiptPayload,
  opened: readonly OpenedDisclosure[],
  { request, target, decisionId: decided }: ExpectedPurchase,
): readonly Mismatch[] {
  const { method, headers, body, idempotencyKey } = request;
  const values = new Map(opened.flatMap((one) => (one.ok ? [[one.name, one.value] as const] : [])));
  const wanted = {
    target_url: target.href,
    target_origin: target.origin,
    header_names: Object.keys(headers).sort(),
    request_body_sha256: toHex(sha256(utf8(body === undefined ? '' : JSON.stringify(body)))),
    idempotency_key: idempotencyKey,
  };
  return [
    ...compare('receipt.request.method', method, signed.method),
    ...compare('receipt.decisionId', decided, decisionId),
    ...Object.entries(wanted).flatMap(([name, value]) =>
      compare(`disclosures.${name}`, value, values.get(name)),
    ),
    ...opened.flatMap((disclosure, index) =>
      disclosure.ok
        ? []
        : compare(
            `disclosures.${disclosure.name ?? index}`,
            'a commitment of the receipt',
            disclosure.problem,
          ),
    ),
  ];
}

/** 200 for a success, 502 for a failure; a success is an answer 2xx of the target. */
function faultsOfOutcome({ outcome, attempts }: ReceiptPayload, status: number): readonly Mismatch[] {
  const succeeded = outcome.status === 'succeeded';
  const answered = outcome.responseStatus ?? 0;
  const last = attempts.at(-1);
  return [
    ...compare('http.status', succeeded ? 200 : 502, status),
    ...(succeeded && (answered < 200 || answered > 299)
      ? compare('receipt.outcome.responseStatus', '200 to 299', outcome.responseStatus)
      : []),
    ...(succeeded ? compare('receipt.attempts.outcome', 'succeeded', last?.outcome) : []),
  ];
}

/** Readable members of the answer that differ from the signed ones. */
const faultsOfText = ({ differences }: ReceiptReport, execution: PaidExecution): readonly Mismatch[] => [
  ...differences.flatMap((member) => compare(member, 'as in the signed receipt', valueAt(execution, member))),
  ...compare('receipt.replay', execution.idempotentReplay, execution.receipt.replay),
];

const valueAt = (value: unknown, path: string): unknown =>
  path
    .split('.')
    .reduce((within, name) => (within as Readonly<Record<string, unknown>> | undefined)?.[name], value);

/** An earlier payment's receipt may be of any time before. */
function faultsOfTime(
  { iat }: ReceiptPayload,
  { signedAtMs, nowMs }: ExpectedPurchase,
  earlier: boolean,
): readonly Mismatch[] {
  const from = earlier ? 0 : Math.floor(signedAtMs / 1000) - CLOCK_TOLERANCE_SECONDS;
  const to = Math.ceil(nowMs / 1000) + CLOCK_TOLERANCE_SECONDS;
  if (iat >= from && iat <= to) return [];
  return compare('receipt.iat', `${from} to ${to} (Unix seconds)`, iat);
}

/** All of them lead to the relay. */
const faultsOfLinks = ({ links }: PaidExecution, relay: string): readonly Mismatch[] =>
  Object.entries(links)
    .filter(([, url]) => URL.parse(url)?.origin !== relay)
    .flatMap(([name, url]) => compare(`links.${name}`, `a URL of ${relay}`, url));
