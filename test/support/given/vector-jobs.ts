// The jobs of the published test vectors and the payloads of their receipts, of every version, made of recorded events as the service makes them.
import { Buffer } from 'node:buffer';
import { utf8 } from '#src/domain/encoding.ts';
import type { AttemptMade } from '#src/domain/events/job.ts';
import type { JobEvent } from '#src/domain/events.ts';
import type { CompletedJob } from '#src/domain/job/state.ts';
import type { NormalRequest } from '#src/domain/job/webhook-request.ts';
import { payloadHash } from '#src/domain/payment/payload-hash.ts';
import {
  eventChain,
  type ReceiptLog,
  type ReceiptPayload,
  receiptPayload,
} from '#src/domain/receipt/payload.ts';
import type { AttemptReport } from '#src/ports/outbound.ts';
import { discloseAttempt, discloseRequest, discloseResponse } from '#src/usecases/execution/disclosures.ts';
import { givenJob } from './given.ts';
import {
  attemptRetried,
  attemptSucceeded,
  hex,
  JOB_ID,
  jobCompleted,
  jobStarted,
  receiptSigned,
  SCHEDULE_ID,
  T0,
} from './given-events.ts';
import { recorded } from './given-receipt.ts';
import { sha256 } from './primitives.ts';
import { keyedHash } from './vector-keys.ts';

export const LOG: ReceiptLog = { origin: 'relay.example/receipts', mmdSeconds: 3600 };
const deps = { keyedHash };
const hashOf = (text: string) => Buffer.from(sha256(text)).toString('hex');

const BODY = utf8('{"order":17}');
const request: NormalRequest = {
  url: 'https://target.example/hook?order=17',
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-order': '17' },
  body: { order: 17 },
  idempotencyKey: 'order-17',
  retry: { attempts: 3, backoffMs: 250 },
  timeoutMs: 12_000,
};
const asked = discloseRequest(
  deps,
  JOB_ID,
  request,
  { href: request.url, origin: 'https://target.example' },
  BODY,
);
const reported = (address: string | null, body: string | null) =>
  ({
    address,
    leafSha256: address === null ? null : hashOf('certificate of target.example'),
    responseBytes: body === null ? null : body.length,
    responseBodySha256: body === null ? null : hashOf(body),
    truncated: false,
  }) as AttemptReport;
const dialled = discloseAttempt(deps, JOB_ID, 1, reported('203.0.113.7', null));
const answered = discloseResponse(deps, JOB_ID, reported(null, 'ok'));

/** What x402 presents for the paid receipt: the authorization of EIP-3009 as it was signed. */
export const SIGNED_PAYMENT = {
  authorization: {
    from: `0x${'2'.repeat(40)}`,
    to: `0x${'1'.repeat(40)}`,
    value: '3000',
    validAfter: '0',
    validBefore: String(T0 / 1000 + 120),
    nonce: `0x${hex('7')}`,
  },
  signature: `0x${'ab'.repeat(64)}1b`,
};
const payment = {
  scheme: 'exact',
  network: 'eip155:8453',
  asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  amount: SIGNED_PAYMENT.authorization.value,
  payTo: SIGNED_PAYMENT.authorization.to,
  payer: SIGNED_PAYMENT.authorization.from,
  transaction: `0x${hex('5')}`,
  payloadHash: payloadHash(SIGNED_PAYMENT),
};
const decision = { decisionId: 'dec_0000000000000000000000000d', decisionHash: hashOf('decision') };
export const schedule = { id: SCHEDULE_ID, run: 3, dueAt: new Date(T0 - 800).toISOString(), lateByMs: 800 };

const started = (changes: Parameters<typeof jobStarted>[0] = {}) =>
  jobStarted({ commitments: asked.commitments, ...changes });
const delivered = (changes: Partial<AttemptMade> = {}) =>
  attemptSucceeded({ ...dialled.commitments, ...changes });
const completed = (changes: Parameters<typeof jobCompleted>[0] = {}) =>
  jobCompleted({ responseCommitment: answered.facts.responseCommitment, ...changes });
function payloadOf(events: readonly JobEvent[], log: ReceiptLog | null = LOG): ReceiptPayload {
  const { state } = givenJob(...events, receiptSigned());
  if (state.status !== 'completed') throw new Error('a receipt needs a completed job');
  const stored = recorded(events);
  const stream = { id: `job-${JOB_ID}`, revision: String(stored.length - 1), chain: eventChain(stored) };
  const { receiptId } = receiptSigned().data;
  return receiptPayload(state as CompletedJob, { receiptId, iat: T0 / 1000, stream, log });
}

const none = { leafCommitment: null, addressCommitment: null };
const lastAttempt = { willRetry: false, waitMs: null };
const unreached = attemptRetried({
  ...none,
  ...lastAttempt,
  phase: 'connect',
  sent: 'no',
  status: null,
  errorCategory: 'connect_error',
  reason: 'connection_refused',
  tlsVersion: null,
  retryAfterMs: null,
});
const noResponse = { responseStatus: null, responseBytes: null, responseCommitment: null };

/** By the names of their vectors. */
export const PAYLOADS = {
  free: payloadOf([started(), delivered(), completed()]),
  paid: payloadOf([
    started({ mode: 'x402', payment, ...decision }),
    delivered(),
    completed({ decisionId: decision.decisionId }),
  ]),
  'no-log': payloadOf([started(), delivered(), completed()], null),
  'unknown-length': payloadOf([started(), delivered(), completed({ truncated: 'unknown' })]),
  'scheduled-run': payloadOf([started({ mode: 'x402', payment, schedule }), delivered(), completed()]),
  'failed-unreached': payloadOf([
    started(),
    unreached,
    completed({ status: 'failed', errorCategory: 'connect_error', ...noResponse }),
  ]),
  'failed-answered': payloadOf([
    started(),
    attemptRetried(dialled.commitments),
    attemptRetried({ ...none, ...lastAttempt, number: 2 }),
    completed({ status: 'failed', attempts: 2, responseStatus: 503, errorCategory: 'target_server_error' }),
  ]),
  'no-idempotency-key': payloadOf([
    started({ commitments: { ...asked.commitments, idempotency_key: null } }),
    delivered(),
    completed(),
  ]),
};

/** The disclosures of the free receipt, as an execution response has them. */
export const DISCLOSURES = [...asked.disclosures, ...dialled.disclosures, ...answered.disclosures].map(
  ({ text }) => text,
);
/** Names a URL that the receipt does not commit to. */
export const FOREIGN_DISCLOSURE = discloseRequest(
  deps,
  JOB_ID,
  request,
  { href: 'https://other.example/', origin: 'https://other.example' },
  BODY,
).disclosures.map(({ text }) => text)[0] as string;
/** The commitment to the idempotency key of the free receipt, which a twin replaces. */
export const HIDDEN = asked.commitments.idempotency_key;
