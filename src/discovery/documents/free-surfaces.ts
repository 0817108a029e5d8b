// The free surfaces as the catalog shows them, and the capabilities of the two that plan: browser handoff and schedules.
import { type TSchema, Type } from '@sinclair/typebox';
import { addressOf, document, endpoint, endpointSchema, Text, Texts } from '#src/discovery/document.ts';
import { ACTION } from '#src/discovery/paid-routes.ts';
import { ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { HANDOFF_ACTIONS, HandoffAction, HandoffRequest } from '#src/domain/planning/handoff.ts';
import { PaymentPolicy, SCHEDULE_CHARGE, SchedulePreviewRequest } from '#src/domain/planning/schedule.ts';
import { Closed, Count, Link, Nullable } from '#src/domain/schema-parts.ts';

export const surfaceSchema = {
  id: Text,
  status: Text,
  category: Text,
  title: Text,
  description: Text,
  endpoint: Closed(endpointSchema),
};

const surface = (id: string, status: string, category: string, route: RouteFacts) => {
  const { summary: title, description } = route;
  return { id, status, category, title, description, endpoint: endpoint(route) };
};

export const scheduledActions = {
  ...surface('scheduled.webhook', 'preview-only', 'automation', ROUTES.schedulePreview),
  availability:
    'Durable paid scheduling is not active. It is planned to charge once per executed run, not per schedule definition, ' +
    'and to answer with a schedule id and the links of each run.',
};

export const browserHandoff = {
  ...surface('browser.handoff', 'active-handoff-only', 'automation', ROUTES.handoff),
  safeUse:
    'Hand the package to an agent that you trust with the site. Put no passwords or session tokens into its texts.',
};

export const secretStorage = {
  ...surface('secrets.policy', 'policy-only', 'ops', ROUTES.secretsPolicy),
  description:
    'No long-lived target-side secret is stored: credentials are sent with each call and forwarded to the target only.',
  safeUse:
    'Use target-owned webhook secrets or short-lived per-request headers. Never send wallet private keys, seed phrases, ' +
    'database URLs or long-lived admin credentials.',
};

const types = HandoffAction.properties.type;

const MEANINGS: Readonly<Record<HandoffAction['type'], string>> = {
  instruction: 'An instruction or a note, as text.',
  navigate: 'Open the target.',
  click: 'Click an element.',
  type: 'Type a text into a field.',
  select: 'Choose an option.',
  submit: 'Submit the form.',
  wait_for_text: 'Wait until a text is shown.',
  screenshot: 'Take a picture of the page.',
  extract: 'Read something from the page.',
  verify: 'Check a condition on the page.',
};

export const HANDOFF_EXAMPLE: HandoffRequest = {
  targetUrl: 'https://example.com/orders',
  actions: [
    { type: 'navigate', description: 'Open the list of orders' },
    { type: 'click', selector: 'a[href="/orders/17"]', description: 'Open order 17' },
    { type: 'wait_for_text', text: 'Order 17' },
    { type: 'extract', description: 'The delivery date' },
    { type: 'verify', text: 'Paid' },
  ],
  returnUrl: 'https://example.com/done',
  idempotencyKey: 'handoff-17',
};

export const handoffCapabilities = document([ROUTES.handoffCapabilities], {
  ...surfaceSchema,
  safeUse: Text,
  executionModel: Type.Literal('handoff-only'),
  actionTypes: Type.Array(
    Closed({
      type: types,
      description: Text,
      needs: Type.Array(Texts, { description: 'At least one field of each list.' }),
    }),
  ),
  actionFields: Type.Array(
    Closed({ name: Text, required: Type.Boolean(), maxLength: Nullable(Count), description: Text }),
  ),
  limits: Closed({
    minActions: Count,
    maxActions: Count,
    textMaxLength: Count,
    selectorMaxLength: Count,
    urlMaxLength: Count,
    idempotencyKeyMaxLength: Count,
    validMs: Count,
    requestsPerMinute: Count,
  }),
  rules: Texts,
  examples: Type.Array(Closed({ title: Text, request: HandoffRequest })),
  links: Closed({ handoff: Link, secretsPolicy: Link, openapi: Link }),
})((facts) => ({
  ...browserHandoff,
  executionModel: 'handoff-only',
  actionTypes: types.anyOf.map(({ const: type }) => ({
    type,
    description: MEANINGS[type],
    needs: HANDOFF_ACTIONS[type].map((choice) => [...choice]),
  })),
  actionFields: Object.entries<TSchema>(HandoffAction.properties).map(
    ([name, { maxLength = null, description = 'One of actionTypes.' }]) => ({
      name,
      required: name === 'type',
      maxLength,
      description,
    }),
  ),
  limits: {
    minActions: LIMITS.handoffActions.min,
    maxActions: LIMITS.handoffActions.max,
    textMaxLength: LIMITS.handoffTextLength.max,
    selectorMaxLength: LIMITS.handoffSelectorLength.max,
    urlMaxLength: LIMITS.urlLength.max,
    idempotencyKeyMaxLength: LIMITS.idempotencyKeyLength.max,
    validMs: LIMITS.handoffValidMs.max,
    requestsPerMinute: facts.rateLimitPerMinute,
  },
  rules: HANDOFF_RULES,
  examples: [{ title: 'Read the delivery date of an order', request: HANDOFF_EXAMPLE }],
  links: {
    handoff: addressOf(facts, ROUTES.handoff),
    secretsPolicy: addressOf(facts, ROUTES.secretsPolicy),
    openapi: addressOf(facts, ROUTES.openapi),
  },
}));

const HANDOFF_RULES = [
  'A package is for one target: an action has no address of its own.',
  'The target is checked with the policy of executions; a refused target is answered with 200, allowed false and no package.',
  'needs lists the required fields of a type: at least one field of each list.',
  'Unknown fields, types and empty texts are refused with 400 invalid_handoff_actions and the list of errors.',
  'returnUrl is an absolute HTTPS URL; it is checked like a target and never called; a refused one is 400 invalid_request.',
  'Nothing is executed, stored or charged here. Text of type actions may be a secret: send no long-lived one.',
];

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

export const scheduleCapabilities = document([ROUTES.scheduleCapabilities], {
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
})((facts) => ({
  ...scheduledActions,
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
  rules: SCHEDULE_RULES,
  paymentPolicy: SCHEDULE_CHARGE,
  planned: PLANNED,
  examples: SCHEDULE_EXAMPLES,
  links: {
    preview: addressOf(facts, ROUTES.schedulePreview),
    execute: addressOf(facts, ROUTES.execute),
    openapi: addressOf(facts, ROUTES.openapi),
  },
}));

const SCHEDULE_RULES = [
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
