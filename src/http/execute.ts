// Paid execution on the wire: take in, execute, answer 200 or 502 with the receipt and links that work at once.
import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { ErrorCategory, Mode, PaymentFacts } from '#src/domain/event-fields.ts';
import { ID_PATTERN } from '#src/domain/ids.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { shownSignature } from '#src/domain/receipt/payload.ts';
import { Fault, isRefused, type Refused } from '#src/domain/refusal.ts';
import { WebhookRequest } from '#src/domain/webhook-request.ts';
import type { Execution } from '#src/usecases/execution.ts';
import { json } from './answer.ts';
import type { HttpDeps } from './deps.ts';
import { refusalAnswer } from './errors.ts';
import { takeIn } from './intake.ts';
import { type Links, linksFrom } from './links.ts';
import { describe } from './operation.ts';
import { rateRule } from './rate-limit.ts';
import { schemaCheck } from './schema-check.ts';
import { Closed, HttpStatus, Instant, Link, Nullable } from './schema-parts.ts';

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
  links: Closed({
    job: Link,
    receipt: Link,
    verifyJob: Link,
    verifyReceipt: Link,
    proof: Link,
    decision: Type.Optional(Link),
  }),
});

const check = schemaCheck(WebhookRequest);

export function executeRoutes(deps: HttpDeps) {
  const links = linksFrom(deps.settings.baseUrl);
  const rate = rateRule('execute', deps.settings.rateLimitPerMinute);
  return new Elysia().post(
    '/api/execute/webhook',
    async ({ request }) => {
      const taken = await takeIn(deps, request, { rate, check, gate: deps.paymentGate });
      if (isRefused(taken)) return refusalAnswer(taken);
      const execution = await execute(deps, links, {
        request: taken.body,
        route: 'execute/webhook',
        decisionId: null,
        decisionHash: null,
        notApproved: null,
        presented: taken.presented,
        payer: taken.payer,
        via: request.headers.get('via'),
      });
      if (isRefused(execution)) return refusalAnswer(withJobLink(execution, links));
      await linksWork(deps, execution);
      return json(execution.job.status === 'succeeded' ? 200 : 502, responseOf(execution, links));
    },
    { parse: 'none', ...describe(operation) },
  );
}

/** Where a fault names a job, the caller gets its address. */
async function execute(deps: HttpDeps, links: Links, input: Parameters<HttpDeps['execute']>[0]) {
  try {
    return await deps.execute(input);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    throw new Fault(error.code, error.message, {
      cause: error.cause,
      details: linkedDetails(error.details, links),
      ...(error.retryAfterSeconds === null ? {} : { retryAfterSeconds: error.retryAfterSeconds }),
    });
  }
}

const withJobLink = (refusal: Refused, links: Links): Refused =>
  refusal.details === undefined ? refusal : { ...refusal, details: linkedDetails(refusal.details, links) };

function linkedDetails(details: unknown, links: Links): unknown {
  if (typeof details !== 'object' || details === null || !('jobId' in details)) return details;
  const { jobId } = details;
  return typeof jobId === 'string' ? { ...details, links: { job: links.job(jobId) } } : details;
}

/** The result stands whether or not the read models come after in time. */
async function linksWork(deps: HttpDeps, { position }: Execution): Promise<void> {
  try {
    await deps.progress.caughtUp(position, LIMITS.caughtUpWaitMs);
  } catch (cause) {
    deps.logger.warn('read models not caught up at the answer', { cause });
  }
}

function responseOf(execution: Execution, links: Links): typeof ExecutionResponse.static {
  const { mode, replay, job, receipt, payment, disclosures } = execution;
  const { id, status, attempts, decisionId, responseStatus, errorCategory, createdAt, completedAt } = job;
  return {
    mode,
    idempotentReplay: replay,
    job: { id, status, attempts, decisionId, responseStatus, errorCategory, createdAt, completedAt },
    receipt: {
      id: receipt.id,
      signature: shownSignature(receipt.jws),
      replay,
      jws: receipt.jws,
      keyId: receipt.keyId,
    },
    payment: payment && paymentOf(payment),
    disclosures: [...disclosures],
    links: {
      job: links.job(id),
      receipt: links.receipt(receipt.id),
      verifyJob: links.verifyJob(id),
      verifyReceipt: links.verifyReceipt(receipt.id),
      proof: links.proof(id),
      ...(decisionId === null ? {} : { decision: links.decision(decisionId) }),
    },
  };
}

function paymentOf({ network, asset, amount, payTo, payer, transaction }: PaymentFacts) {
  return { network, asset, amount, payTo, payer, transaction };
}

const operation = {
  summary: 'Execute one outbound HTTPS request',
  description:
    'Makes one outbound HTTPS request to a public target and answers with a signed receipt of the attempt and its outcome.',
  tag: 'execution' as const,
  body: WebhookRequest,
  answers: {
    200: ['The last attempt answered 2xx.', ExecutionResponse],
    502: ['The target failed: a recorded, receipted outcome.', ExecutionResponse],
  } as const,
  errors: {
    400: 'The request is invalid or its target is refused: nothing was sent.',
    408: 'The body did not arrive in time.',
    409: 'The idempotency key is in use for another request, or its first call is still running.',
    413: 'The body is too large.',
    415: 'The body is not application/json.',
    429: 'Rate limited.',
    503: 'A part of the service is unavailable: see error.code.',
    508: 'The request came through this relay already.',
  },
};
