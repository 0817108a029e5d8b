// Refusals (returned) and faults (thrown). A refusal is returned before anything was sent: nothing is charged, and no job
// exists. The code is the same string here, on the wire and in test titles; `http/response/errors.ts` maps it to a status.

export type RefusalCode =
  | 'invalid_request'
  | 'invalid_json'
  | 'unsafe_target'
  | 'target_blocked'
  | 'target_not_allowed'
  | 'target_unresolvable'
  | 'invalid_handoff_actions'
  | 'invalid_schedule'
  | 'payment_required'
  | 'body_timeout'
  | 'job_not_found'
  | 'receipt_not_found'
  | 'decision_not_found'
  | 'schedule_not_found'
  | 'route_not_found'
  | 'method_not_allowed'
  | 'receipt_not_ready'
  | 'decision_not_approved'
  | 'decision_expired'
  | 'decision_action_mismatch'
  | 'schedule_ended'
  | 'schedule_not_yours'
  | 'idempotency_conflict'
  | 'idempotency_in_progress'
  | 'payment_reused'
  | 'body_too_large'
  | 'unsupported_media_type'
  | 'rate_limited'
  | 'target_quota_exceeded'
  | 'too_many_in_flight'
  | 'relay_loop';

/** A failure of this service: thrown, never recorded as a fact about the target. */
export type FaultCode =
  | 'internal_error'
  | 'no_signing_key'
  | 'payment_unconfirmed'
  | 'facilitator_unavailable'
  | 'event_log_unavailable'
  | 'read_models_unavailable'
  | 'schedules_unavailable';

declare const brand: unique symbol;

/** Only `refused` makes one. */
export type Refused<C extends RefusalCode = RefusalCode> = {
  readonly [brand]: true;
  readonly refused: C;
  /** For people; never contains a secret, an internal address or a stack trace. */
  readonly message: string;
  readonly details?: unknown;
  /** Whole seconds after which the caller may repeat the request. */
  readonly retryAfterSeconds?: number;
};

export function refused<C extends RefusalCode>(
  code: C,
  message: string,
  extra: { details?: unknown; retryAfterSeconds?: number } = {},
): Refused<C> {
  return { refused: code, message, ...extra } as Refused<C>;
}

export function isRefused(value: object): value is Refused {
  return 'refused' in value;
}

/** `details.reason`: a code of the payment protocol or of this service; the refusal's own code if it has none. */
export function reasonOf({ refused: code, details }: Refused): string {
  const known = typeof details === 'object' && details !== null && 'reason' in details;
  return known && typeof details.reason === 'string' ? details.reason : code;
}

/** The answer of a check that refuses nothing. */
export const ALLOWED = { kind: 'allowed' } as const;
export type Allowed = typeof ALLOWED;

/** A limit of this process is reached: of executions, or of DNS queries under way. */
export const tooManyInFlight = () =>
  refused('too_many_in_flight', 'Too many calls are in flight: try again shortly.', { retryAfterSeconds: 1 });

/** The cause is for the operator's log; the caller gets only code and message. */
export class Fault extends Error {
  readonly code: FaultCode;
  readonly retryAfterSeconds: number | null;
  readonly details: unknown;
  constructor(
    code: FaultCode,
    message: string,
    options: { cause?: unknown; retryAfterSeconds?: number; details?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'Fault';
    this.code = code;
    this.retryAfterSeconds = options.retryAfterSeconds ?? null;
    this.details = options.details;
  }
}

/** A remark on a request that is not refused. */
export type Warning = { readonly code: string; readonly message: string };

export const warningsIf = (
  ...warnings: readonly (readonly [holds: boolean, code: string, message: string])[]
): readonly Warning[] => warnings.flatMap(([holds, code, message]) => (holds ? [{ code, message }] : []));
