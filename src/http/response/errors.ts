// The one table where a code meets a status, and the one shape of an error on the wire.
// It leaves what is refused, and why, to the domain and the use cases.
import { Type } from '@sinclair/typebox';
import { Fault, type FaultCode, type RefusalCode, type Refused, refused } from '#src/domain/refusal.ts';
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
  payment_unconfirmed: 503,
  facilitator_unavailable: 503,
  event_log_unavailable: 503,
  read_models_unavailable: 503,
  relay_loop: 508,
} as const satisfies Record<RefusalCode | FaultCode, number>;

/** Codes whose repeat makes sense soon, where nobody said when. Whole seconds. */
const DEFAULT_RETRY_AFTER: Partial<Record<RefusalCode | FaultCode, number>> = {
  idempotency_in_progress: 1,
  receipt_not_ready: 1,
  rate_limited: 60,
  target_quota_exceeded: 60,
  too_many_in_flight: 1,
  payment_unconfirmed: 5,
  facilitator_unavailable: 5,
  event_log_unavailable: 5,
  read_models_unavailable: 1,
};

export const ErrorBody = Type.Object(
  {
    error: Type.Object(
      {
        code: Type.Optional(Type.String()),
        message: Type.String(),
        details: Type.Optional(Type.Unknown()),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);

type Told = {
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

/** A fault tells its own public message; anything else that was thrown tells nothing. */
export function faultAnswer(thrown: unknown): Response {
  if (thrown instanceof Fault && thrown.code !== 'internal_error') return answer(thrown);
  const message = 'The service failed. The failure is recorded under this x-request-id.';
  return answer({ code: 'internal_error', message, details: undefined, retryAfterSeconds: null });
}

function answer({ code, message, details, retryAfterSeconds }: Told): Response {
  const body = { error: { code, message, ...(details === undefined ? {} : { details }) } };
  const seconds = retryAfterSeconds ?? DEFAULT_RETRY_AFTER[code];
  return json(STATUS[code], body, seconds === undefined ? {} : { 'retry-after': String(seconds) });
}
