// The schedule preview on the wire: always 200 for a well-formed schedule of a well-formed webhook, whatever the verdict
// on the target. Nothing is scheduled, kept or logged.
import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { SCHEDULE_CHARGE, scheduleCapabilities } from '#src/discovery/documents/schedule-capabilities.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import {
  DailySchedule,
  OnceSchedule,
  type Schedule,
  SchedulePreviewRequest,
} from '#src/domain/planning/schedule.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import { describe } from '#src/http/openapi/operation.ts';
import { BODY_ERRORS, type ParseDeps, parseRequest, rateRule } from '#src/http/request/parse-request.ts';
import {
  type InputFault,
  type Invalid,
  invalid,
  MAX_FAULTS,
  schemaCheck,
} from '#src/http/request/validation.ts';
import { documentAnswers, publisher } from '#src/http/response/conditional-get.ts';
import { refusalAnswer } from '#src/http/response/errors.ts';
import { json } from '#src/http/response/json.ts';
import { linksFrom } from '#src/http/response/links.ts';
import type { SchedulePreview } from '#src/usecases/planning/preview-schedule.ts';
import { type DocumentDeps, documentFacts } from './document-facts.ts';
import { requestShown, verdictShown } from './policy.ts';
import { ScheduleCapabilities, SchedulePreviewResponse } from './schedule-schemas.ts';
import { Closed } from './schema-parts.ts';

/** The schedule apart, as its faults have a code of their own; where the rest has faults, they are listed with them. */
const rest = schemaCheck(
  Closed({ webhook: SchedulePreviewRequest.properties.webhook, schedule: Type.Optional(Type.Unknown()) }),
);
const scheduleHolder = schemaCheck(Type.Object({ schedule: Type.Optional(Type.Unknown()) }));
const check: typeof rest = {
  ...rest,
  faults: (given) => [...rest.faults(given), ...scheduleFaultsIn(given)].slice(0, MAX_FAULTS),
};
const typeCheck = schemaCheck(
  Type.Object({ type: Type.Union([OnceSchedule.properties.type, DailySchedule.properties.type]) }),
);
const onceCheck = schemaCheck(OnceSchedule);
const dailyCheck = schemaCheck(DailySchedule);

export type ScheduleDeps = ParseDeps &
  DocumentDeps & {
    previewSchedule(
      request: SchedulePreviewRequest,
    ): Promise<SchedulePreview | Refused<'invalid_request' | 'invalid_schedule'>>;
  };

export function scheduleRoutes(deps: ScheduleDeps) {
  const { settings } = deps;
  const rates = [rateRule('schedule-preview', settings.rateLimitPerMinute)];
  const facts = documentFacts(deps);
  const capabilities = publisher(facts)('application/json', () =>
    JSON.stringify(scheduleCapabilities(facts)),
  );
  return new Elysia()
    .post(
      ROUTES.schedulePreview.path,
      async ({ request }) => {
        const taken = await parseRequest(deps, request, { rates, check });
        if (isRefused(taken)) return refusalAnswer(taken);
        const schedule = readSchedule(taken.body.schedule);
        if ('refused' in schedule) return refusalAnswer(schedule);
        const preview = await deps.previewSchedule({ webhook: taken.body.webhook, schedule });
        if (isRefused(preview)) return refusalAnswer(preview);
        return json(200, responseOf(preview, settings));
      },
      { parse: 'none', ...describe(ROUTES.schedulePreview, operation) },
    )
    .get(
      ROUTES.scheduleCapabilities.path,
      capabilities,
      describe(ROUTES.scheduleCapabilities, capabilitiesOperation),
    );
}

/** By its type first: of a union a caller learns only that it fits none. */
function readSchedule(given: unknown): Schedule | Invalid<'invalid_schedule'> {
  if (isSchedule(given)) return given;
  return invalid('invalid_schedule', 'The schedule does not match its schema: see details.', faultsAt(given));
}

/** None where there is no place for a schedule. */
function scheduleFaultsIn(body: unknown): InputFault[] {
  if (!scheduleHolder.matches(body) || isSchedule(body.schedule)) return [];
  return faultsAt(body.schedule);
}

const isSchedule = (given: unknown): given is Schedule =>
  onceCheck.matches(given) || dailyCheck.matches(given);

const faultsAt = (given: unknown): InputFault[] =>
  faultsOf(given).map(({ path, message }) => ({ path: `/schedule${path}`, message }));

function faultsOf(given: unknown): InputFault[] {
  if (!typeCheck.matches(given)) return typeCheck.faults(given);
  return (given.type === 'once' ? onceCheck : dailyCheck).faults(given);
}

function responseOf(
  { schedule, nextRuns, localTimes, webhook, warnings }: SchedulePreview,
  settings: DocumentDeps['settings'],
): typeof SchedulePreviewResponse.static {
  const links = linksFrom(settings.baseUrl);
  const { target, normalized } = requestShown(webhook);
  return {
    ...verdictShown(webhook.verdict),
    status: 'preview-only',
    paid: false,
    willExecute: false,
    preview: {
      schedule,
      nextRuns: [...nextRuns],
      localTimes: [...localTimes],
      webhook: normalized,
      target,
    },
    paymentPolicy: SCHEDULE_CHARGE,
    warnings: [...warnings],
    next: {
      capabilities: links.at(ROUTES.scheduleCapabilities.path),
      decide: links.at(ROUTES.decide.path),
      execute: links.at(ROUTES.execute.path),
    },
  };
}

const operation = {
  body: SchedulePreviewRequest,
  answers: { 200: ['The preview, whether the target is allowed or not.', SchedulePreviewResponse] } as const,
  errors: {
    ...BODY_ERRORS,
    400: 'The request is malformed, or the schedule is: see error.code.',
    503: 'A part of the service is unavailable: see error.code.',
  },
};

const capabilitiesOperation = {
  answers: documentAnswers('The capabilities.', ScheduleCapabilities),
};
