// Every error code, once: its status, meaning, whether it is charged, and what the caller does. Answers take status and
// Retry-After from this table; the document /api/errors and the interface description publish it.
import type { FaultCode, RefusalCode } from './refusal.ts';

export type ErrorCode = RefusalCode | FaultCode;

export type ErrorEntry = {
  /** Of the HTTP answer. */
  readonly status: number;
  readonly meaning: string;
  /** `at_most_once`: it may have been charged; a repeat with the same payment header is not charged again. */
  readonly charged: 'never' | 'at_most_once';
  readonly action: string;
  /** Of the answer, unless the refusal has its own; whole seconds. */
  readonly retryAfterSeconds?: number;
};

const entry = <S extends number>(
  status: S,
  meaning: string,
  action: string,
  more: Partial<Pick<ErrorEntry, 'charged' | 'retryAfterSeconds'>> = {},
) => ({ status, meaning, charged: 'never', action, ...more }) as ErrorEntry & { readonly status: S };

const after = (retryAfterSeconds: number) => ({ retryAfterSeconds });

const CORRECT = 'Correct what `details` names, and send it again; the same payment is still good.';
const OTHER_TARGET = 'Call another target. POST /api/policy/check shows the verdict for free.';
const ID = 'Check the id: it is in the links of the answer that named it.';
const DECIDE = 'Decide again with POST /api/decide/webhook (free), and execute the new decision.';
const WAIT = 'Wait as Retry-After says, and send the same request with the same payment header again.';
const SAME_PAYMENT =
  'Repeat with the same payment header, never with a new one: it is charged at most once and executed once.';

export const ERRORS = {
  invalid_request: entry(400, 'The request does not have the required form.', CORRECT),
  invalid_json: entry(
    400,
    'The body is not JSON in UTF-8.',
    'Correct the body. A name that occurs twice is `invalid_request`.',
  ),
  unsafe_target: entry(
    400,
    'The target is not a public HTTPS endpoint that this service calls. `details.reason` is `port` or `url_form` if the text of the URL is the cause.',
    OTHER_TARGET,
  ),
  target_blocked: entry(400, 'The operator has blocked the target host.', OTHER_TARGET),
  target_not_allowed: entry(400, 'The operator allows certain target hosts only.', OTHER_TARGET),
  target_unresolvable: entry(
    400,
    'The target host has no public address, or DNS gave no answer (`details.retryable` is true).',
    'If `details.retryable` is true, send it again later; else correct the host name.',
  ),
  invalid_handoff_actions: entry(400, 'The browser steps cannot be packaged.', CORRECT),
  invalid_schedule: entry(400, 'The schedule is no schedule, or its time zone is unknown.', CORRECT),
  payment_required: entry(
    402,
    'No payment came, or the payment is refused: the body is that of x402, whose `error` is `payment_required` or `payment_required: <reason>`.',
    'Compare the terms with your limits, sign a payment and send the request again. For a reason, see `paymentReasons`.',
  ),
  schedule_not_yours: entry(
    403,
    'Further runs of a schedule are bought by the payer of its run 1, or with its token.',
    'Pay with the wallet of run 1, or send the token as `authorization: Bearer`.',
  ),
  job_not_found: entry(404, 'There is no such job, or it is no longer retained.', ID),
  receipt_not_found: entry(404, 'There is no such receipt.', ID),
  decision_not_found: entry(404, 'There is no such decision.', ID),
  schedule_not_found: entry(404, 'There is no such schedule, or the token is not that of its buyer.', ID),
  route_not_found: entry(404, 'There is nothing at this path.', 'See /openapi.json for every operation.'),
  method_not_allowed: entry(
    405,
    'The path does not answer this method.',
    'Use a method of the header Allow.',
  ),
  body_timeout: entry(408, 'The body did not arrive in time.', 'Send the request again.'),
  receipt_not_ready: entry(409, 'The job has no receipt yet, or no checkpoint contains it.', WAIT, after(1)),
  decision_not_approved: entry(409, 'The decision does not recommend to pay.', DECIDE),
  decision_expired: entry(409, 'The decision is older than 24 hours.', DECIDE),
  decision_action_mismatch: entry(
    409,
    'The action is not the one that was decided on.',
    `Send the decided action. ${DECIDE}`,
  ),
  schedule_ended: entry(
    409,
    'The schedule is cancelled, or has no further run to pay for.',
    'Buy another schedule with POST /api/schedules/webhook.',
  ),
  idempotency_conflict: entry(
    409,
    'The idempotency key names another request.',
    'Use a key of its own for each task; the same key only for a repeat of the same request.',
  ),
  idempotency_in_progress: entry(
    409,
    'The first request with this idempotency key is still running; `details.links.job` leads to it.',
    WAIT,
    after(1),
  ),
  payment_reused: entry(
    409,
    'The payment belongs to another request.',
    'Sign a payment for this request; the first one returns its own result only.',
  ),
  body_too_large: entry(
    413,
    'The body is larger than the limit.',
    'Send less; /api/capabilities has every limit.',
  ),
  unsupported_media_type: entry(
    415,
    'The body is not declared as JSON.',
    'Send `content-type: application/json`.',
  ),
  rate_limited: entry(429, 'Too many requests of this caller or payer.', WAIT, after(60)),
  target_quota_exceeded: entry(429, 'Too many calls of this target host.', WAIT, after(60)),
  too_many_in_flight: entry(429, 'Too many calls are in flight.', WAIT, after(1)),
  internal_error: entry(500, 'The service failed.', SAME_PAYMENT, { charged: 'at_most_once' }),
  no_signing_key: entry(
    503,
    'No signing key is valid now, so nothing is executed. With `details.links.job`, the call was made before, or may have been: its result will be found there.',
    WAIT,
    { charged: 'at_most_once', ...after(60) },
  ),
  payment_unconfirmed: entry(503, 'It is not known yet whether the payment was settled.', SAME_PAYMENT, {
    charged: 'at_most_once',
    ...after(5),
  }),
  facilitator_unavailable: entry(503, 'The payment could not be verified.', WAIT, after(5)),
  event_log_unavailable: entry(503, 'The event log is unavailable.', SAME_PAYMENT, {
    charged: 'at_most_once',
    ...after(5),
  }),
  read_models_unavailable: entry(
    503,
    'The read models are unavailable or behind the event log.',
    WAIT,
    after(1),
  ),
  schedules_unavailable: entry(
    503,
    'Runs of schedules are neither sold nor started now: their keys or their clock are not available.',
    WAIT,
    after(5),
  ),
  relay_loop: entry(508, 'The request came from a relay: it would call itself.', 'Call the target directly.'),
} as const satisfies Readonly<Record<ErrorCode, ErrorEntry>>;

export const ERROR_CODES = Object.keys(ERRORS) as readonly ErrorCode[];
