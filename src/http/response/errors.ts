// The answers to refusals and faults, by the one table of codes (domain/error-catalog.ts), and what is logged of faults. What
// is refused, and why, is decided by the domain and the use cases.
import { Type } from '@sinclair/typebox';
import { ERROR_CODES, ERRORS, type ErrorCode, type ErrorEntry } from '#src/domain/error-catalog.ts';
import { Fault, type Refused, refused } from '#src/domain/refusal.ts';
import { Closed } from '#src/domain/schema-parts.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import { json } from './json.ts';

type StatusOf = { readonly [C in ErrorCode]: (typeof ERRORS)[C]['status'] };
export const STATUS = Object.fromEntries(ERROR_CODES.map((code) => [code, ERRORS[code].status])) as StatusOf;

export const ErrorBody = Closed({
  error: Closed({
    code: Type.Optional(Type.String({ enum: [...ERROR_CODES], description: 'See /api/errors.' })),
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
  // Any text: a facilitator may have codes of its own, which are passed on.
  error: Type.String({
    description:
      'Why: `payment_required`, alone or with a reason as in `payment_required: insufficient_funds`, see /api/errors, or a code of the facilitator.',
  }),
  message: Type.Optional(
    Type.String({
      description:
        'Why the payment that came is refused, for people: of its times, how they differ from the header Date.',
    }),
  ),
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
  readonly code: ErrorCode;
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
  const { retryAfterSeconds: usual }: ErrorEntry = ERRORS[code];
  const seconds = retryAfterSeconds ?? usual;
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
