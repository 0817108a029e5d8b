// The one table that maps codes to statuses, the bodies of refusals and faults, and what is logged of faults. What is
// refused, and why, is decided by the domain and the use cases.
import { Type } from '@sinclair/typebox';
import { Fault, type FaultCode, type RefusalCode, type Refused, refused } from '#src/domain/refusal.ts';
import { Closed } from '#src/domain/schema-parts.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import { json } from './json.ts';

export const STATUS = {
  invalid_request: 400,
  invalid_json: 400,
  unsafe_target: 400,
  target_blocked: 400,
  target_not_allowed: 400,
  target_unresolvable: 400,
  invalid_handoff_actions: 400,
  invalid_schedule: 400,
  payment_required: 402,
  job_not_found: 404,
  receipt_not_found: 404,
  decision_not_found: 404,
  route_not_found: 404,
  method_not_allowed: 405,
  body_timeout: 408,
  receipt_not_ready: 409,
  decision_not_approved: 409,
  decision_expired: 409,
  decision_action_mismatch: 409,
  idempotency_conflict: 409,
  idempotency_in_progress: 409,
  payment_reused: 409,
  body_too_large: 413,
  unsupported_media_type: 415,
  rate_limited: 429,
  target_quota_exceeded: 429,
  too_many_in_flight: 429,
  internal_error: 500,
  no_signing_key: 503,
  payment_unconfirmed: 503,
  facilitator_unavailable: 503,
  event_log_unavailable: 503,
  read_models_unavailable: 503,
  relay_loop: 508,
} as const satisfies Record<RefusalCode | FaultCode, number>;

/** Retry-After of codes after which a repeat makes sense, unless the refusal has its own. Whole seconds. */
const DEFAULT_RETRY_AFTER: Partial<Record<RefusalCode | FaultCode, number>> = {
  idempotency_in_progress: 1,
  receipt_not_ready: 1,
  rate_limited: 60,
  target_quota_exceeded: 60,
  too_many_in_flight: 1,
  payment_unconfirmed: 5,
  facilitator_unavailable: 5,
  event_log_unavailable: 5,
  no_signing_key: 60,
  read_models_unavailable: 1,
};

export const ErrorBody = Closed({
  error: Closed({
    code: Type.Optional(Type.String()),
    message: Type.String(),
    details: Type.Optional(Type.Unknown()),
  }),
});

/**
 * The body of a 402, the one error without the error body: the challenge of x402 version 1. The payment protocol builds
 * it; conformance tests compare it with this.
 */
export const ChallengeBody = Closed({
  x402Version: Type.Literal(1),
  error: Type.String({ description: 'Why: a code of the protocol or ours.' }),
  accepts: Type.Array(
    Type.Object({
      network: Type.String(),
      maxAmountRequired: Type.String(),
      payTo: Type.String(),
      asset: Type.String(),
    }),
    {
      description: 'Payment requirements of version 1, amounts in atomic units of `asset`: pay one of them.',
    },
  ),
  validation: Type.Optional(
    Type.Array(Closed({ path: Type.String(), message: Type.String() }), {
      description: 'What the schema has against the body as it came.',
    }),
  ),
});

type ErrorFacts = {
  readonly code: RefusalCode | FaultCode;
  readonly message: string;
  readonly details: unknown;
  readonly retryAfterSeconds: number | null;
};

export function refusalAnswer(refusal: Refused): Response {
  const { refused: code, message, details, retryAfterSeconds = null } = refusal;
  return answer({ code, message, details, retryAfterSeconds });
}

export const routeNotFound = () =>
  refusalAnswer(refused('route_not_found', 'There is nothing at this path.'));

/** The public message of a fault; of anything else that was thrown, nothing. */
export function faultAnswer(thrown: unknown): Response {
  if (thrown instanceof Fault && thrown.code !== 'internal_error') return answer(thrown);
  const message = 'The service failed. The failure is recorded under this x-request-id.';
  return answer({ code: 'internal_error', message, details: undefined, retryAfterSeconds: null });
}

function answer({ code, message, details, retryAfterSeconds }: ErrorFacts): Response {
  const body = { error: { code, message, ...(details === undefined ? {} : { details }) } };
  const seconds = retryAfterSeconds ?? DEFAULT_RETRY_AFTER[code];
  return json(STATUS[code], body, seconds === undefined ? {} : { 'retry-after': String(seconds) });
}

/** An outage fails thousands of requests for one cause. */
const CAUSE_EVERY_MS = 60_000;

/** Their adapter logs the cause, without what a payer sent. */
const CAUSES_LOGGED_BY_ADAPTER: ReadonlySet<string> = new Set([
  'payment_unconfirmed',
  'facilitator_unavailable',
]);

/**
 * Logs requests that failed through no fault of their callers: a `Fault` as one line with its code, with its cause once
 * a minute; anything else in full, as a defect of this program.
 */
export function failureLog({
  logger,
  clock,
}: {
  readonly logger: Logger;
  readonly clock: Pick<Clock, 'monotonic'>;
}) {
  const causeLoggedAt = new Map<string, number>();
  return (requestId: string, error: unknown): void => {
    if (!(error instanceof Fault)) {
      logger.bug('a request failed', { requestId, cause: error });
      return;
    }
    const { code, cause } = error;
    const now = clock.monotonic();
    const isNew =
      !CAUSES_LOGGED_BY_ADAPTER.has(code) &&
      now - (causeLoggedAt.get(code) ?? Number.NEGATIVE_INFINITY) >= CAUSE_EVERY_MS;
    if (isNew) causeLoggedAt.set(code, now);
    logger.warn('a part of the service was unavailable to a request', {
      requestId,
      code,
      ...(isNew && { cause: cause ?? error }),
    });
  };
}
