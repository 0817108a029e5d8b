// One call of the paid execution: what it asks for, what it is known by, what it sends, and what it returns.
import { buildOutboundHeaders } from '#src/domain/destination/headers.ts';
import { toBase64, toHex, utf8 } from '#src/domain/encoding.ts';
import type { ErrorCategory, Mode, PaymentFacts, Route, ScheduledRun } from '#src/domain/event-fields.ts';
import { STREAM } from '#src/domain/events.ts';
import type { FailureReason } from '#src/domain/failure-reasons.ts';
import type { CompletedJob } from '#src/domain/job/state.ts';
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import type { Authorized } from '#src/domain/payment/state.ts';
import type { Disclosure } from '#src/domain/receipt/disclosures.ts';
import { type Allowed, Fault, type Refused } from '#src/domain/refusal.ts';
import type { Clock, Entropy } from '#src/ports/clock.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { logFault } from '#src/ports/outage.ts';
import type { OutboundRequest, TargetResponse } from '#src/ports/outbound.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import type { AgentSigner, KeyedHash, Signer } from '#src/ports/signer.ts';
import { fingerprint, type ReadRequest } from '#src/usecases/decisions/judge-request.ts';
import type { ResponseDeadline } from '#src/usecases/response-deadline.ts';
import { type DiscloseDeps, discloseRequest, type RequestDisclosures } from './disclosures.ts';
import type { Lookup } from './idempotency.ts';
import type { Ran } from './run-job.ts';

export type ExecuteInput = {
  /** Valid by its schema. */
  readonly request: WebhookRequest;
  readonly route: Route;
  readonly decisionId: string | null;
  /** SHA-256 of JCS of DecisionRecorded's data, hex. */
  readonly decisionHash: string | null;
  /** By the decision, where one is required: judged for new calls only. */
  readonly approval: Allowed | Refused;
  /** Decoded and locally checked; null in demo mode. */
  readonly presented: PresentedPayment | null;
  /** The payer's address, or `demo`. */
  readonly payer: string;
  /** An opaque key of the caller's address, IPv6 by its /64. */
  readonly client: string;
  /** The Via header of the caller's request. */
  readonly via: string | null;
  /** The caller gets what the target answers, if this very call is the one that is sent. It is no part of the request. */
  readonly returnsResponse?: boolean;
  /** Absent: it is no run of a schedule. */
  readonly run?: RunInput;
};

/** A run of a schedule: its key is its schedule and its number, and no key of a caller names it. */
export type RunInput = {
  /** The job that it becomes, decided when it was bought. */
  readonly jobId: string;
  readonly schedule: Omit<ScheduledRun, 'lateByMs'>;
  /** No job starts later: Unix ms. */
  readonly notAfter: number;
};

/** What an execution returns, whether it was run now, replayed, resumed or closed after an interruption. */
export type Execution = {
  readonly mode: Mode;
  /** true: the stored result of an earlier job; nothing was sent and nothing charged for this call. */
  readonly replay: boolean;
  readonly job: {
    readonly id: string;
    readonly status: 'succeeded' | 'failed';
    readonly attempts: number;
    readonly decisionId: string | null;
    readonly responseStatus: number | null;
    readonly errorCategory: ErrorCategory | null;
    /** Of the last attempt. */
    readonly reason: FailureReason | null;
    readonly createdAt: string;
    readonly completedAt: string;
  };
  readonly receipt: { readonly id: string; readonly keyId: string; readonly jws: string };
  readonly payment: PaymentFacts | null;
  /** For the payer only: opens the salted commitments of the receipt. */
  readonly disclosures: readonly string[];
  /** Of the last attempt: only if the caller asked for it, and never of a replay. */
  readonly response: TargetResponse | null;
};

/** The request as it came, and what is derived from it once. */
export type Call = ExecuteInput & {
  readonly read: ReadRequest;
  readonly lookup: Lookup;
  /** Exact bytes on the wire; null: no body. */
  readonly body: Uint8Array | null;
  readonly deadline: ResponseDeadline;
};

export function callOf(
  { keyedHash }: { readonly keyedHash: KeyedHash },
  input: ExecuteInput,
  read: ReadRequest,
  deadline: ResponseDeadline,
): Call {
  const { body } = read.request;
  return {
    ...input,
    read,
    deadline,
    lookup: lookupOf(keyedHash, input, read),
    body: body === undefined ? null : utf8(JSON.stringify(body)),
  };
}

/** What the event log knows the call by. */
export function lookupOf(keyedHash: KeyedHash, input: ExecuteInput, { request }: ReadRequest): Lookup {
  const { presented, payer, route, decisionId, run } = input;
  // One decision approves one execution per payer: without an idempotency key the decision is the key. The payment's
  // identifier is the key of a request that has neither; as it is no part of the request, each copy of a payment finds
  // its job, whatever its header contains beside it.
  const identifier = decisionId === null ? (presented?.identifier ?? null) : null;
  const named = request.idempotencyKey ?? identifier;
  return {
    paymentStream: presented === null ? null : STREAM.payment(presented.hash),
    claimStream:
      run === undefined
        ? claimOfCall(keyedHash, payer, named, decisionId)
        : claimOf(keyedHash, 'run-claim', [run.schedule.id, run.schedule.run]),
    fingerprint: fingerprint(keyedHash, request, route, decisionId),
    scheduleId: run?.schedule.id ?? null,
    authorization: presented && authorizedBy(presented),
  };
}

function claimOfCall(keyedHash: KeyedHash, payer: string, key: string | null, decisionId: string | null) {
  if (key !== null) return claimOfKey(keyedHash, payer, key);
  return decisionId === null ? null : claimOf(keyedHash, 'claim', [payer, decisionId]);
}

/** The stream of an idempotency key. */
export const claimOfKey = (keyedHash: KeyedHash, payer: string, key: string): string =>
  claimOf(keyedHash, 'claim', [payer, `key:${key}`]);

const claimOf = (
  keyedHash: KeyedHash,
  scope: 'claim' | 'run-claim',
  key: readonly (string | number)[],
): string => STREAM.claim(toHex(keyedHash.mac(scope, JSON.stringify(key))));

/** A payer's own key signs one authorization in one way; of a contract wallet, each signature counts as another payment. */
export const authorizedBy = (presented: PresentedPayment): Authorized => {
  const { amount, payTo, validBefore, signer, payloadHash } = presented;
  return { amount, payTo, validBefore, payloadHash: signer === 'contract' ? payloadHash : null };
};

/** What the events of a payment record of it: its signature is not stored. */
export function recordedOf(presented: PresentedPayment) {
  const { scheme, network, asset, amount, payTo, payer, nonce, validBefore, payloadHash, x402Version } =
    presented;
  return { scheme, network, asset, amount, payTo, payer, nonce, validBefore, payloadHash, x402Version };
}

/** Who sent a contract wallet's signature is known only after the facilitator has verified it. */
export const isContract = ({ presented }: Call): boolean => presented?.signer === 'contract';

/** Whose unconfirmed payments count. Who signs with an address's own key shares nothing with who merely names it. */
export const accountOf = (call: Call): string => (isContract(call) ? `contract ${call.payer}` : call.payer);

/**
 * Whose calls a payment counts among before the facilitator has verified it. Anyone can name a contract wallet that did
 * not sign: that uses up neither its owner's share nor another client's.
 */
export const unprovenPayer = (call: Call): string =>
  isContract(call) ? `${accountOf(call)} ${call.client}` : call.payer;

/** Has neither a payment nor a key by which its caller could find it again. */
export const isAnonymous = ({ lookup }: Call): boolean =>
  lookup.paymentStream === null && lookup.claimStream === null;

// ── what it sends ───────────────────────────────────────────────────────────────────────────────────────

export type SendDeps = {
  readonly clock: Pick<Clock, 'now'>;
  readonly signer: Signer;
  /** Signs the request as a whole; null: off. */
  readonly agentSigner: Pick<AgentSigner, 'current'> | null;
  readonly entropy: Pick<Entropy, 'bytes'>;
  /** PUBLIC_BASE_URL. */
  readonly baseUrl: string;
  /** Our own name in the Via header. */
  readonly pseudonym: string;
};

/** As verifiers of Web Bot Auth require. */
const NONCE_BYTES = 64;

/** The outbound request of one attempt; its timestamp is signed, so it is made once per attempt. */
export async function outboundRequest(
  { clock, signer, agentSigner, entropy, baseUrl, pseudonym }: SendDeps,
  { read, body, returnsResponse = false }: Call,
  jobId: string,
): Promise<OutboundRequest> {
  const timestampSeconds = Math.floor(clock.now() / 1000);
  const facts = { jobId, baseUrl, pseudonym, timestampSeconds, body };
  const { method, timeoutMs } = read.request;
  const { origin, path } = read.target;
  const key = agentSigner?.current() ?? null;
  const authority = origin.slice('https://'.length);
  const agent = key && { key, method, authority, path, nonce: toBase64(entropy.bytes(NONCE_BYTES)) };
  const headers = await buildOutboundHeaders(
    read.headers,
    facts,
    (message) => signer.current().sign(message),
    agent,
  );
  return { target: read.target, method, headers, body, timeoutMs, keepsResponse: returnsResponse };
}

export const openRequest = (deps: DiscloseDeps, { read, body }: Call, jobId: string): RequestDisclosures =>
  discloseRequest(deps, jobId, read.request, read.target, body);

// ── what it returns ─────────────────────────────────────────────────────────────────────────────────────

export const ranNow = (ran: Ran, { disclosures }: RequestDisclosures): Execution =>
  executionOf(ran.job, false, [...disclosures, ...ran.disclosures], ran.response);

/**
 * Returns the disclosures again only to the requester, who has just sent the same request again, and only those that open
 * what was recorded: the same JSON with its keys in another order is the same request, but not the same bytes.
 */
export function replayOf(deps: DiscloseDeps, call: Call, job: CompletedJob): Execution {
  const { jobId, commitments } = job.started;
  const { disclosures } = openRequest(deps, call, jobId);
  const recorded = new Set(Object.values(commitments));
  const open = disclosures.filter(({ commitment }) => recorded.has(commitment));
  return executionOf(job, true, open, null);
}

function executionOf(
  { started, attempts, completed, receipt }: CompletedJob,
  replay: boolean,
  disclosures: readonly Disclosure[],
  response: TargetResponse | null,
): Execution {
  if (receipt === null) throw new Error('a completed job has its receipt in the same append');
  return {
    mode: started.mode,
    replay,
    job: {
      id: started.jobId,
      status: completed.status,
      attempts: completed.attempts,
      decisionId: completed.decisionId,
      responseStatus: completed.responseStatus,
      errorCategory: completed.errorCategory,
      reason: attempts.at(-1)?.reason ?? null,
      createdAt: started.startedAt,
      completedAt: completed.completedAt,
    },
    receipt: { id: receipt.receiptId, keyId: receipt.keyId, jws: receipt.jws },
    payment: started.payment,
    disclosures: disclosures.map(({ text }) => text),
    response,
  };
}

function repeatOf({ lookup, read }: Call): string {
  if (lookup.paymentStream !== null) return 'Repeat with the same payment header.';
  const hasKey = read.request.idempotencyKey !== undefined;
  return hasKey ? 'Repeat with the same idempotencyKey.' : 'Repeat the same call.';
}

/** How far a job has come. `stored`: JobStarted is, so that its request may have been sent. */
type Reached = { readonly jobId: string; readonly stored: boolean };

/** What the caller is answered for `cause`. `job` null: its start was not reached. */
export function answeredFor(call: Call, job: Reached | null, cause: unknown): unknown {
  if (cause instanceof EventLogUnavailable) return logUnavailable(call, job, cause);
  const isKeyGone = cause instanceof Fault && cause.code === 'no_signing_key';
  return isKeyGone && job?.stored ? unreceipted(call, job.jobId, cause) : cause;
}

function logUnavailable(call: Call, job: Reached | null, cause: EventLogUnavailable): Fault {
  const repeat = isAnonymous(call) ? '' : ` ${repeatOf(call)}`;
  const [outcome, jobId] = job?.stored
    ? [`the result will be found at the job.${repeat}`, job.jobId]
    : isAnonymous(call)
      ? ['nothing was sent, and nothing will be: repeat the call.', null]
      : [`for this call nothing was sent so far.${repeat}`, job?.jobId ?? null];
  return logFault(cause, outcome, jobId === null ? null : { jobId });
}

/** The clock was set while the call was made: recovery closes the job once a key is valid. */
function unreceipted(call: Call, jobId: string, cause: Fault): Fault {
  const repeat = isAnonymous(call) ? '' : ` ${repeatOf(call)}`;
  const message = `This relay has no valid signing key any more for the receipt of this call, which may have been sent: the result will be found at the job once a key is valid.${repeat}`;
  const details = { ...(typeof cause.details === 'object' ? cause.details : null), jobId };
  return new Fault('no_signing_key', message, { cause, details });
}
