// The capabilities of schedule previews; no schedule is active.
import { Type } from '@sinclair/typebox';
import { addressOf, type Document, heading, headingSchema, Text, Texts } from '#src/discovery/document.ts';
import { ACTION } from '#src/discovery/paid-routes.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { PaymentPolicy, SCHEDULE_CHARGE, SchedulePreviewRequest } from '#src/domain/planning/schedule.ts';
import { Closed, Count, Link } from '#src/domain/schema-parts.ts';
import { scheduledActions, surfaceSchema } from './free-surfaces.ts';

export const SCHEDULE_EXAMPLES: { title: string; request: SchedulePreviewRequest }[] = [
  {
    title: 'Once, at an instant',
    request: { webhook: ACTION, schedule: { type: 'once', runAt: '2099-12-31T09:00:00+01:00' } },
  },
  {
    title: 'Every day at nine in Berlin, winter and summer',
    request: { webhook: ACTION, schedule: { type: 'daily', timeOfDay: '09:00', timezone: 'Europe/Berlin' } },
  },
];

const ScheduleCapabilities = Closed({
  ...headingSchema,
  ...surfaceSchema,
  availability: Text,
  executionModel: Type.Literal('preview-only'),
  scheduleTypes: Type.Array(
    Closed({
      type: Text,
      description: Text,
      nextRuns: Count,
      fields: Type.Array(Closed({ name: Text, required: Type.Boolean(), format: Text, description: Text })),
    }),
  ),
  limits: Closed({ nextRuns: Count, timezoneMaxLength: Count, requestsPerMinute: Count }),
  rules: Texts,
  paymentPolicy: PaymentPolicy,
  planned: Closed({
    status: Type.Literal('planned'),
    method: Text,
    path: Type.String({ description: 'Not served yet.' }),
    paid: Type.Boolean(),
    active: Type.Literal(false),
    chargeModel: Text,
    description: Text,
  }),
  examples: Type.Array(Closed({ title: Text, request: SchedulePreviewRequest })),
  links: Closed({ preview: Link, execute: Link, openapi: Link }),
});

export const scheduleCapabilities: Document<typeof ScheduleCapabilities> = {
  routes: [ROUTES.scheduleCapabilities],
  answer: 'The capabilities.',
  schema: ScheduleCapabilities,
  build: (facts) => ({
    ...heading(facts),
    ...scheduledActions(),
    executionModel: 'preview-only',
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
            description: 'In the future, on an existing day. Fractions of a millisecond are cut off.',
          },
        ],
      },
      {
        type: 'daily',
        description: 'One run on every day of a time zone.',
        nextRuns: LIMITS.scheduleNextRuns.max,
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
            format: `IANA time zone, at most ${LIMITS.scheduleTimezoneLength.max} characters`,
            description: 'Upper or lower case; an offset such as +02:00 is not a time zone.',
          },
        ],
      },
    ],
    limits: {
      nextRuns: LIMITS.scheduleNextRuns.max,
      timezoneMaxLength: LIMITS.scheduleTimezoneLength.max,
      requestsPerMinute: facts.rateLimitPerMinute,
    },
    rules: RULES,
    paymentPolicy: SCHEDULE_CHARGE,
    planned: PLANNED,
    examples: SCHEDULE_EXAMPLES,
    links: {
      preview: addressOf(facts, ROUTES.schedulePreview),
      execute: addressOf(facts, ROUTES.execute),
      openapi: addressOf(facts, ROUTES.openapi),
    },
  }),
};

const RULES = [
  'webhook is the body of a paid execution, checked with the policy of executions; a refused target is answered with 200 and allowed false.',
  'If the clock skips the time of day, the run is later by the skipped time; if the clock shows it twice, it runs once, the first time.',
  'If a zone skips a whole day, that day has no run of its own.',
  'Fields of the other type, unknown fields and unknown zones are refused with 400 invalid_schedule and the list of errors.',
  'One idempotencyKey for all runs would make every later run a replay of the first: give each run its own.',
];

/** Planned only: not a route of this service. */
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
