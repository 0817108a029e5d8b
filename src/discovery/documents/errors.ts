// The catalogue of errors: every code and every reason of a 402, from the tables that answer with them.
import { type Static, Type } from '@sinclair/typebox';
import { document, LinksShown, serviceLinks, Text } from '#src/discovery/document.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { ERROR_CODES, ERRORS, type ErrorEntry } from '#src/domain/error-catalog.ts';
import { FAILURE_REASON_NAMES, FAILURE_REASONS } from '#src/domain/failure-reasons.ts';
import {
  FACILITATOR_REASON,
  PAYMENT_REASONS,
  type PaymentReason,
  REASONS_OF_402,
} from '#src/domain/payment/reasons.ts';
import { Closed, OneOf } from '#src/domain/schema-parts.ts';

const ErrorShown = Closed({
  code: OneOf(...ERROR_CODES),
  status: Type.Integer({ description: 'HTTP status of the answer.' }),
  meaning: Text,
  charged: OneOf('never', 'at_most_once'),
  retryAfterSeconds: Type.Union([Type.Integer({ description: 'Seconds.' }), Type.Null()]),
  action: Type.String({ description: 'What the caller does.' }),
});

const AttemptReasonShown = Closed({
  reason: Text,
  errorCategory: Type.String({
    description: 'Of the attempt; `target_*`: each one that a status of the target has.',
  }),
  meaning: Text,
  action: Type.String({ description: 'What mends the cause.' }),
});

const ReasonShown = Closed({
  reason: Text,
  from: OneOf('relay', 'facilitator'),
  meaning: Text,
  charged: Type.Literal('never'),
  action: Text,
});

export const errors = document([ROUTES.errors], {
  purpose: Text,
  errors: Type.Array(ErrorShown),
  paymentReasons: Type.Array(ReasonShown),
  attemptReasons: Type.Array(AttemptReasonShown),
  links: LinksShown,
})((facts) => ({
  purpose:
    'Every value of error.code, every reason that follows `payment_required: ` in the `error` of a 402, and every reason of a failed attempt (job.reason of an execution, attemptLog of a job). A code or a reason that exists keeps its meaning; new ones may be added.',
  errors: ERROR_CODES.map((code) => {
    const { status, meaning, charged, action, retryAfterSeconds }: ErrorEntry = ERRORS[code];
    return { code, status, meaning, charged, retryAfterSeconds: retryAfterSeconds ?? null, action };
  }),
  paymentReasons: reasons(),
  attemptReasons: FAILURE_REASON_NAMES.map((reason) => {
    const { category, meaning, action } = FAILURE_REASONS[reason];
    return { reason, errorCategory: category, meaning, action };
  }),
  links: serviceLinks(facts),
}));

const isOwn = (reason: string): reason is PaymentReason => Object.hasOwn(PAYMENT_REASONS, reason);

const reasons = (): Static<typeof ReasonShown>[] =>
  REASONS_OF_402.map((reason) => {
    const { meaning, action } = isOwn(reason) ? PAYMENT_REASONS[reason] : FACILITATOR_REASON;
    return { reason, from: isOwn(reason) ? 'relay' : 'facilitator', meaning, charged: 'never', action };
  });
