// An execution as a paid route answers it: the schema, the links that work at once, and the job that an error names.
import { Type } from '@sinclair/typebox';
import { fromUtf8, toBase64 } from '#src/domain/encoding.ts';
import { ErrorCategory, Mode, oneOf, PaymentFacts, Truncated } from '#src/domain/event-fields.ts';
import { DecisionRecorded } from '#src/domain/events/decision.ts';
import { FailureReasonShown } from '#src/domain/failure-reasons.ts';
import { ID_PATTERN } from '#src/domain/ids.ts';
import { bodyWarnings, type WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { shownSignature } from '#src/domain/receipt/payload.ts';
import { Fault, type Refused } from '#src/domain/refusal.ts';
import { Closed, HttpStatus, Instant, Link, Nullable, Warnings } from '#src/domain/schema-parts.ts';
import type { TargetResponse } from '#src/ports/outbound.ts';
import type { Guided } from '#src/usecases/execution/execute-guided-webhook.ts';
import type { Execution } from '#src/usecases/execution/execution-call.ts';
import { ExecutionLinks, jobLinks, type Links } from './links.ts';
import { shownBy } from './shown.ts';

const { network, asset, amount, payTo, payer, transaction } = PaymentFacts.properties;

export const ExecutionResponse = Closed({
  mode: Mode,
  idempotentReplay: Type.Boolean({
    description: 'true: the stored result of an earlier job; nothing was sent.',
  }),
  job: Closed({
    id: Type.String({ pattern: ID_PATTERN.job }),
    status: Type.Union([Type.Literal('succeeded'), Type.Literal('failed')]),
    attempts: Type.Integer({ minimum: 0, maximum: 3 }),
    decisionId: Nullable(Type.String()),
    responseStatus: Nullable(HttpStatus),
    errorCategory: Nullable(ErrorCategory),
    reason: FailureReasonShown,
    createdAt: Instant,
    completedAt: Instant,
  }),
  receipt: Closed({
    id: Type.String({ pattern: ID_PATTERN.receipt }),
    signature: Type.String({ description: '`ed25519:` and the third part of `jws`.' }),
    replay: Type.Boolean(),
    jws: Type.String({ description: 'Compact JWS (RFC 7515): the receipt itself.' }),
    keyId: Type.String(),
  }),
  payment: Nullable(Closed({ network, asset, amount, payTo, payer, transaction })),
  disclosures: Type.Array(Type.String(), {
    description:
      'base64url(JSON [salt, name, value]): opens the commitments of the receipt. For the payer only.',
  }),
  checkpoint: Nullable(
    Type.String({
      description:
        'The newest checkpoint of the transparency log (a C2SP signed note), with or without this receipt. Keep it: a relay that later drops or rewrites what it covers is caught by it.',
    }),
  ),
  warnings: Type.Optional(Warnings),
  links: ExecutionLinks,
  response: Type.Optional(
    Closed(
      {
        status: HttpStatus,
        headers: Type.Record(Type.String(), Type.String(), {
          description:
            'content-type, retry-after and what this relay shows beside them, where the target sent them.',
        }),
        encoding: oneOf('utf8', 'base64'),
        body: Type.String({
          description: `The bytes that were read, at most ${LIMITS.responseBodyBytes.max}: as text if they are UTF-8, else in base64. Their SHA-256 is the disclosure response_body_sha256, which opens a commitment of the receipt.`,
        }),
        truncated: Truncated,
      },
      'What the target answered to the last attempt: only where the call asked for it, and only in its first answer. It is not stored.',
    ),
  ),
});
type ExecutionResponse = typeof ExecutionResponse.static;

const { recommendation, confidence } = DecisionRecorded.versions[2].properties;

export const GuidedResponse = Closed({
  ...ExecutionResponse.properties,
  decision: Closed({
    id: Type.String({ pattern: ID_PATTERN.decision }),
    recommendation,
    confidence,
    links: Closed({ decision: Link }),
  }),
});
type GuidedResponse = typeof GuidedResponse.static;

export const statusOf = ({ job }: Execution) => (job.status === 'succeeded' ? 200 : 502);

const jobShown = shownBy(ExecutionResponse.properties.job);
const paymentShown = shownBy(ExecutionResponse.properties.payment);

/** `request`: that was executed. `checkpoint`: the newest, as it is when this is answered. */
export function executionShown(
  { mode, replay, job, receipt, payment, disclosures, response }: Execution,
  request: WebhookRequest,
  links: Links,
  checkpoint: string | null,
): ExecutionResponse {
  const { id, jws, keyId } = receipt;
  const warnings = bodyWarnings(request);
  return {
    mode,
    idempotentReplay: replay,
    job: jobShown(job),
    receipt: { id, signature: shownSignature(jws), replay, jws, keyId },
    payment: paymentShown(payment),
    disclosures: [...disclosures],
    checkpoint,
    ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
    links: {
      ...jobLinks(links, job.id, id, job.decisionId),
      receipt: links.receipt(id),
      verifyReceipt: links.verifyReceipt(id),
    },
    ...(response === null ? {} : { response: responseShown(response) }),
  };
}

/** JSON restores either text to the very bytes. */
function responseShown({ status, headers, body, truncated }: TargetResponse) {
  const text = fromUtf8(body);
  const shown =
    text === null
      ? { encoding: 'base64' as const, body: toBase64(body) }
      : { encoding: 'utf8' as const, body: text };
  return { status, headers: { ...headers }, ...shown, truncated };
}

export function guidedShown(
  { execution, decision }: Guided,
  action: WebhookRequest,
  links: Links,
  checkpoint: string | null,
): GuidedResponse {
  const { decisionId: id, recommendation, confidence } = decision;
  return {
    ...executionShown(execution, action, links, checkpoint),
    decision: { id, recommendation, confidence, links: { decision: links.decision(id) } },
  };
}

/** Where a refusal names a job, the caller gets its address. */
export function withJobLink<R extends Refused>(refusal: R, links: Links): R {
  return refusal.details === undefined
    ? refusal
    : { ...refusal, details: linkedDetails(refusal.details, links) };
}

/** Adds the links to a fault; returns anything else that was thrown unchanged. */
export function faultWithJobLink(thrown: unknown, links: Links): unknown {
  if (!(thrown instanceof Fault)) return thrown;
  return new Fault(thrown.code, thrown.message, {
    cause: thrown.cause,
    details: linkedDetails(thrown.details, links),
    ...(thrown.retryAfterSeconds === null ? {} : { retryAfterSeconds: thrown.retryAfterSeconds }),
  });
}

function linkedDetails(details: unknown, links: Links): unknown {
  if (typeof details !== 'object' || details === null || !('jobId' in details)) return details;
  const { jobId } = details;
  return typeof jobId === 'string' ? { ...details, links: { job: links.job(jobId) } } : details;
}
