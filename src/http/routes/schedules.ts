// The schedule preview on the wire: 200 for every well-formed schedule of a well-formed webhook, whatever the verdict on
// the target. Nothing is scheduled, stored or logged.
import { Type } from '@sinclair/typebox';
import { SCHEDULE_EXAMPLES } from '#src/discovery/documents/free-surfaces.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { LIMITS } from '#src/domain/limits.ts';
import {
  DailySchedule,
  OnceSchedule,
  PaymentPolicy,
  SCHEDULE_CHARGE,
  Schedule,
  SchedulePreviewRequest,
} from '#src/domain/planning/schedule.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import { Closed, Instant, Link } from '#src/domain/schema-parts.ts';
import type { Settings } from '#src/http/deps.ts';
import { bodyEndpoint, type Endpoint, PART_UNAVAILABLE } from '#src/http/endpoint.ts';
import { type ParseDeps, rateRule } from '#src/http/request/parse-request.ts';
import { invalid, MAX_FAULTS, schemaCheck } from '#src/http/request/validation.ts';
import { linksFrom } from '#src/http/response/links.ts';
import { isObject } from '#src/lib/is-object.ts';
import type { SchedulePreview } from '#src/usecases/planning/preview-schedule.ts';
import { normalizedShown, PolicyCheckResponse, Verdict, verdictShown, Warnings } from './policy.ts';

const SchedulePreviewResponse = Closed({
  ...Verdict,
  status: Type.Literal('preview-only'),
  paid: Type.Literal(false),
  willExecute: Type.Literal(false),
  preview: Closed({
    schedule: Schedule,
    nextRuns: Type.Array(Instant, {
      minItems: 1,
      maxItems: LIMITS.scheduleNextRuns.max,
      description: `In order. The next ${LIMITS.scheduleNextRuns.max} of a daily schedule, the one of a schedule that runs once.`,
    }),
    webhook: PolicyCheckResponse.properties.normalized,
    target: PolicyCheckResponse.properties.target,
  }),
  paymentPolicy: PaymentPolicy,
  warnings: Warnings,
  next: Closed({ capabilities: Link, decide: Link, execute: Link }),
});

/** The schedule is checked apart: its faults alone have a code of their own. */
const outerCheck = schemaCheck(
  Closed({ webhook: SchedulePreviewRequest.properties.webhook, schedule: Type.Optional(Type.Unknown()) }),
);
const typeCheck = schemaCheck(
  Type.Object({ type: Type.Union([OnceSchedule.properties.type, DailySchedule.properties.type]) }),
);
const onceCheck = schemaCheck(OnceSchedule);
const dailyCheck = schemaCheck(DailySchedule);

export type ScheduleDeps = ParseDeps &
  Settings<'baseUrl' | 'rateLimitPerMinute'> & {
    previewSchedule(
      request: SchedulePreviewRequest,
    ): Promise<SchedulePreview | Refused<'invalid_request' | 'invalid_schedule'>>;
  };

export function scheduleRoutes(deps: ScheduleDeps): Endpoint[] {
  const { settings } = deps;
  const links = linksFrom(settings.baseUrl);
  return [
    bodyEndpoint(deps, ROUTES.schedulePreview, {
      check,
      body: SchedulePreviewRequest,
      example: SCHEDULE_EXAMPLES[0]?.request,
      rates: [rateRule('schedule-preview', settings.rateLimitPerMinute)],
      ok: ['The preview, whether the target is allowed or not.', SchedulePreviewResponse],
      errors: { 400: 'The request is malformed, or the schedule is: see error.code.', 503: PART_UNAVAILABLE },
      async answer(asked) {
        if (!isSchedule(asked.schedule)) return malformedSchedule(asked.schedule);
        const preview = await deps.previewSchedule({ webhook: asked.webhook, schedule: asked.schedule });
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
          paymentPolicy: SCHEDULE_CHARGE,
          warnings: [...warnings],
          next: {
            capabilities: links.at(ROUTES.scheduleCapabilities.path),
            decide: links.at(ROUTES.decide.path),
            execute: links.at(ROUTES.execute.path),
          },
        } satisfies typeof SchedulePreviewResponse.static;
      },
    }),
  ];
}

/** Beside other faults those of the schedule are listed too, so that a caller corrects all at once. */
const check: typeof outerCheck = {
  ...outerCheck,
  faults(value) {
    if (!isObject(value)) return outerCheck.faults(value).slice(0, MAX_FAULTS);
    const { schedule = null } = value;
    const inner = isSchedule(schedule) ? [] : malformedSchedule(schedule).details;
    return [...outerCheck.faults(value), ...inner].slice(0, MAX_FAULTS);
  },
};

const isSchedule = (given: unknown): given is Schedule =>
  onceCheck.matches(given) || dailyCheck.matches(given);

/** By its type first: of a union a caller learns only that it fits none. */
function malformedSchedule(given: unknown) {
  const byType = typeCheck.matches(given) ? (given.type === 'once' ? onceCheck : dailyCheck) : typeCheck;
  const message = 'The schedule does not match its schema: see details.';
  return invalid('invalid_schedule', message, byType.faults(given), '/schedule');
}
