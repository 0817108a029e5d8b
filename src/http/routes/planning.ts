// The free plans on the wire, a browser handoff and a schedule preview: 200 for every well-formed one, whatever the verdict
// on the target. Nothing is scheduled, stored or logged.
import { Type } from '@sinclair/typebox';
import { HANDOFF_EXAMPLE, SCHEDULE_EXAMPLES } from '#src/discovery/documents/free-surfaces.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { SCHEDULE_REQUEST_EXAMPLE } from '#src/discovery/schedule-examples.ts';
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { HandoffActions, HandoffPackage, HandoffRequest } from '#src/domain/planning/handoff.ts';
import { ALLOWED, isRefused, type Refused } from '#src/domain/refusal.ts';
import { PaidSchedule, ScheduleRequest } from '#src/domain/schedule/plan.ts';
import {
  ActivePaymentPolicy,
  PaymentPolicy,
  SchedulePreviewRequest,
  scheduleCharge,
} from '#src/domain/schedule/preview.ts';
import { Closed, Instant, Link, Nullable, Warnings } from '#src/domain/schema-parts.ts';
import type { Settings } from '#src/http/deps.ts';
import { bodyEndpoint, type Endpoint, PART_UNAVAILABLE } from '#src/http/endpoint.ts';
import { refuseKey, withHeaderKey } from '#src/http/request/idempotency-header.ts';
import { type ParseDeps, rateRule } from '#src/http/request/parse-request.ts';
import { invalid, MAX_FAULTS, schemaCheck } from '#src/http/request/validation.ts';
import { linksFrom } from '#src/http/response/links.ts';
import { isObject } from '#src/lib/is-object.ts';
import type { Handoff, SchedulePreview } from '#src/usecases/planning/free-plans.ts';
import {
  normalizedShown,
  PolicyCheckResponse,
  PolicyShown,
  policyOf,
  Verdict,
  verdictShown,
} from './policy.ts';

const HandoffResponse = Closed({
  ...Verdict,
  handoff: Nullable(HandoffPackage),
  policy: PolicyShown,
  warnings: Warnings,
  next: Closed({ capabilities: Link, secretsPolicy: Link, decide: Link }),
});

/** The actions are checked apart: their faults have a code of their own. */
const taskCheck = schemaCheck(
  Closed({ ...HandoffRequest.properties, actions: Type.Optional(Type.Unknown()) }),
);
const actionsCheck = schemaCheck(HandoffActions);

/** `policy`: of a deployment without paid schedules, or with them. */
const previewResponse = <P extends typeof PaymentPolicy | typeof ActivePaymentPolicy>(policy: P) =>
  Closed({
    ...Verdict,
    status: Type.Literal('preview-only'),
    paid: Type.Literal(false),
    willExecute: Type.Literal(false),
    preview: Closed({
      schedule: PaidSchedule,
      nextRuns: Type.Array(Instant, {
        minItems: 1,
        maxItems: LIMITS.scheduleNextRuns.max,
        description: `In order. The next ${LIMITS.scheduleNextRuns.max}, or the one of a schedule that runs once.`,
      }),
      webhook: PolicyCheckResponse.properties.normalized,
      target: PolicyCheckResponse.properties.target,
    }),
    paymentPolicy: policy,
    warnings: Warnings,
    next: Closed({ capabilities: Link, decide: Link, execute: Link }),
  });
const SchedulePreviewResponse = previewResponse(PaymentPolicy);
const ActivePreviewResponse = previewResponse(ActivePaymentPolicy);
type SchedulePreviewResponse = typeof SchedulePreviewResponse.static | typeof ActivePreviewResponse.static;

const typeCheck = schemaCheck(
  Type.Object({ type: Type.Union(PaidSchedule.anyOf.map(({ properties }) => properties.type)) }),
);
const typeChecks = PaidSchedule.anyOf.map((of) => [of.properties.type.const, schemaCheck(of)] as const);
const scheduleCheck = schemaCheck(PaidSchedule);

export type PlanningDeps = ParseDeps &
  Settings<'baseUrl' | 'policyMode' | 'targetQuota' | 'rateLimitPerMinute' | 'schedules' | 'offer'> & {
    /** `client`: whose look-ups they are. */
    handOffBrowser(
      request: HandoffRequest,
      client: string,
    ): Promise<Handoff | Refused<'invalid_request' | 'invalid_handoff_actions'>>;
    previewSchedule(
      request: SchedulePreviewRequest,
      client: string,
    ): Promise<SchedulePreview | Refused<'invalid_request' | 'invalid_schedule'>>;
  };

export function planningRoutes(deps: PlanningDeps): Endpoint[] {
  const { settings } = deps;
  const links = linksFrom(settings.baseUrl);
  // What can be bought, where it can.
  const schema = settings.schedules === undefined ? SchedulePreviewRequest : ScheduleRequest;
  return [
    bodyEndpoint(deps, ROUTES.handoff, {
      check: taskCheck,
      body: HandoffRequest,
      example: HANDOFF_EXAMPLE,
      rates: [rateRule('handoff', settings.rateLimitPerMinute)],
      ok: ['The package, or why the target is refused.', HandoffResponse],
      errors: { 400: 'The request is malformed, or an action is: see error.code.', 503: PART_UNAVAILABLE },
      async answer({ actions, ...given }, client, headers) {
        const task = withHeaderKey(given, headers);
        if (isRefused(task)) return task;
        if (!actionsCheck.matches(actions)) {
          const message = 'The actions do not match their schema: see details.';
          return invalid('invalid_handoff_actions', message, actionsCheck.faults(actions), '/actions');
        }
        const handedOff = await deps.handOffBrowser({ ...task, actions }, client);
        if (isRefused(handedOff)) return handedOff;
        const { verdict, warnings } = handedOff;
        return {
          ...verdictShown(verdict),
          handoff: isRefused(verdict) ? null : verdict.handoff,
          policy: policyOf(settings),
          warnings: [...warnings],
          next: {
            capabilities: links.at(ROUTES.handoffCapabilities.path),
            secretsPolicy: links.at(ROUTES.secretsPolicy.path),
            decide: links.at(ROUTES.decide.path),
          },
        } satisfies typeof HandoffResponse.static;
      },
    }),
    bodyEndpoint(deps, ROUTES.schedulePreview, {
      check: previewCheck(schema),
      body: schema,
      example: settings.schedules === undefined ? SCHEDULE_EXAMPLES[0]?.request : SCHEDULE_REQUEST_EXAMPLE,
      rates: [rateRule('schedule-preview', settings.rateLimitPerMinute)],
      ok: [
        'The preview, whether the target is allowed or not.',
        settings.schedules === undefined ? SchedulePreviewResponse : ActivePreviewResponse,
      ],
      errors: { 400: 'The request is malformed, or the schedule is: see error.code.', 503: PART_UNAVAILABLE },
      async answer({ webhook: asks, schedule: plan }, client, headers) {
        if (!scheduleCheck.matches(plan)) return malformedSchedule(plan);
        const unkeyed = settings.schedules === undefined ? ALLOWED : refuseKey(headers);
        if (isRefused(unkeyed)) return unkeyed;
        const keyed = withHeaderKey(asks, headers, '/webhook');
        if (isRefused(keyed)) return keyed;
        const preview = await deps.previewSchedule({ webhook: keyed, schedule: plan }, client);
        if (isRefused(preview)) return preview;
        const { schedule, nextRuns, webhook, warnings } = preview;
        return {
          ...verdictShown(webhook.verdict),
          status: 'preview-only',
          paid: false,
          willExecute: false,
          preview: {
            schedule,
            nextRuns: [...nextRuns],
            webhook: normalizedShown(webhook.normalized),
            target: webhook.target,
          },
          paymentPolicy: scheduleCharge(settings.schedules === undefined ? null : settings.offer.price),
          // A run that is bought is executed once by its number, and takes no key.
          warnings: warnings.filter(
            ({ code }) => settings.schedules === undefined || code !== 'idempotency_key_missing',
          ),
          next: {
            capabilities: links.at(ROUTES.scheduleCapabilities.path),
            decide: links.at(ROUTES.decide.path),
            execute: links.at(ROUTES.execute.path),
          },
        } as SchedulePreviewResponse;
      },
    }),
  ];
}

/**
 * The schedule is checked apart: its faults alone have a code of their own. Beside other faults they are listed too, so that
 * a caller corrects all at once.
 */
function previewCheck({ properties }: typeof SchedulePreviewRequest | typeof ScheduleRequest) {
  const outer = schemaCheck(
    Closed({
      ...properties,
      webhook: properties.webhook as typeof WebhookRequest,
      schedule: Type.Optional(Type.Unknown()),
    }),
  );
  const check: typeof outer = {
    ...outer,
    faults(value) {
      if (!isObject(value)) return outer.faults(value).slice(0, MAX_FAULTS);
      const { schedule = null } = value;
      const inner = scheduleCheck.matches(schedule) ? [] : malformedSchedule(schedule).details;
      return [...outer.faults(value), ...inner].slice(0, MAX_FAULTS);
    },
  };
  return check;
}

/** By its type first: of a union a caller learns only that it fits none. */
function malformedSchedule(given: unknown) {
  const [, byType] = (typeCheck.matches(given) && typeChecks.find(([type]) => type === given.type)) || [];
  const message = 'The schedule does not match its schema: see details.';
  return invalid('invalid_schedule', message, (byType ?? typeCheck).faults(given), '/schedule');
}
