// What a schedule can express, and that none is active.

import type { Facts } from '#src/discovery/facts.ts';
import { ACTION } from '#src/discovery/paid-routes.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { LIMITS } from '#src/domain/limits.ts';
import type { SchedulePreviewRequest } from '#src/domain/planning/schedule.ts';
import { addressOf, heading } from './document-parts.ts';
import { scheduledActions } from './primitives.ts';

/** As every preview says it. */
export const SCHEDULE_CHARGE = {
  previewCharged: false,
  futurePaidSchedulingActive: false,
  recommendedChargeModel: 'per-executed-run',
} as const;

export const SCHEDULE_EXAMPLES: readonly { title: string; request: SchedulePreviewRequest }[] = [
  {
    title: 'Once, at an instant',
    request: { webhook: ACTION, schedule: { type: 'once', runAt: '2099-12-31T09:00:00+01:00' } },
  },
  {
    title: 'Every day at nine in Berlin, winter and summer',
    request: { webhook: ACTION, schedule: { type: 'daily', timeOfDay: '09:00', timezone: 'Europe/Berlin' } },
  },
];

export function scheduleCapabilities(facts: Facts) {
  const { nextRuns, timezoneMaxLength } = LIMITS.schedule;
  return {
    ...heading(facts),
    ...scheduledActions(),
    executionModel: 'preview-only' as const,
    scheduleTypes: [
      {
        type: 'once',
        description: 'One run at an instant.',
        nextRuns: 1,
        fields: [
          {
            name: 'runAt',
            required: true,
            format: 'ISO 8601 with an offset: YYYY-MM-DDTHH:MM[:SS[.fraction]] and Z or +HH:MM',
            description:
              'In the future, on a day that there is. What is finer than a millisecond is cut off.',
          },
        ],
      },
      {
        type: 'daily',
        description: 'One run on every day of a time zone.',
        nextRuns,
        fields: [
          {
            name: 'timeOfDay',
            required: true,
            format: 'HH:MM',
            description: 'Wall clock time, 00:00 to 23:59.',
          },
          {
            name: 'timezone',
            required: true,
            format: `IANA time zone, at most ${timezoneMaxLength} characters`,
            description: 'In any case; an offset such as +02:00 is none.',
          },
        ],
      },
    ],
    limits: { nextRuns, timezoneMaxLength, requestsPerMinute: facts.rateLimitPerMinute },
    rules: RULES,
    paymentPolicy: SCHEDULE_CHARGE,
    planned: PLANNED,
    examples: SCHEDULE_EXAMPLES,
    links: {
      preview: addressOf(facts, ROUTES.schedulePreview),
      execute: addressOf(facts, ROUTES.execute),
      openapi: addressOf(facts, ROUTES.openapi),
    },
  };
}

const RULES = [
  'webhook is the body of a paid execution, judged by the policy that executions go by; a refused target is answered with 200 and allowed false.',
  'Where a clock skips the time of day, the run comes as much later as was skipped; where a clock shows it twice, it runs once, the first time.',
  'Where a zone skips a whole day, that day has no run of its own.',
  'Fields of the other type, unknown fields and unknown zones are refused with 400 invalid_schedule and the list of faults.',
  'One idempotencyKey for all runs would make every later run a replay of the first: give each run its own.',
];

/** Not served: no route of this service. */
const PLANNED = {
  status: 'planned',
  method: 'POST',
  path: '/api/schedules/webhook',
  paid: true,
  active: false,
  chargeModel: SCHEDULE_CHARGE.recommendedChargeModel,
  description:
    'Durable scheduling, charged once per executed run and not per schedule definition; it is to return a schedule id, and links to the job and receipt of each run.',
} as const;
