// The free surfaces as the catalog shows them, and the capabilities of the two that plan: browser handoff and schedules.
import { endpoint, endpointSchema, openDocument, Text } from '#src/discovery/document.ts';
import { NEVER_SEND_TEXT } from '#src/discovery/guidance.ts';
import { ACTION } from '#src/discovery/paid-routes.ts';
import { ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { HANDOFF_ACTIONS, HandoffRequest } from '#src/domain/planning/handoff.ts';
import { SCHEDULE_CHARGE, SchedulePreviewRequest } from '#src/domain/planning/schedule.ts';
import { Closed } from '#src/domain/schema-parts.ts';

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
  safeUse: `Use target-owned webhook secrets or short-lived per-request headers. ${NEVER_SEND_TEXT}`,
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

export const handoffCapabilities = openDocument([ROUTES.handoffCapabilities], (facts) => ({
  ...browserHandoff,
  executionModel: 'handoff-only',
  actionTypes: Object.entries(HANDOFF_ACTIONS).map(([type, needs]) => ({ type, needs })),
  requestSchema: HandoffRequest,
  validMs: LIMITS.handoffValidMs.max,
  requestsPerMinute: facts.rateLimitPerMinute,
  rules: HANDOFF_RULES,
  examples: [{ title: 'Read the delivery date of an order', request: HANDOFF_EXAMPLE }],
}));

const HANDOFF_RULES = [
  'A package is for one target: an action has no address of its own.',
  'The target is checked with the policy of executions; a refused target is answered with 200, allowed false and no package.',
  'needs lists the required fields of a type: at least one field of each list.',
  'Unknown fields, types and empty texts are refused with 400 invalid_handoff_actions and the list of errors.',
  'returnUrl is an absolute HTTPS URL; it is checked like a target and never called; a refused one is answered like a refused target.',
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

export const scheduleCapabilities = openDocument([ROUTES.scheduleCapabilities], (facts) => ({
  ...scheduledActions,
  executionModel: 'preview-only',
  requestSchema: SchedulePreviewRequest,
  requestsPerMinute: facts.rateLimitPerMinute,
  rules: SCHEDULE_RULES,
  paymentPolicy: SCHEDULE_CHARGE,
  // Not a route of this service.
  planned: { method: 'POST', path: '/api/schedules/webhook', active: false },
  examples: SCHEDULE_EXAMPLES,
}));

const SCHEDULE_RULES = [
  `The preview shows the next ${LIMITS.scheduleNextRuns.max} runs of a daily schedule, and the one of a schedule that runs once.`,
  'webhook is the body of a paid execution, checked with the policy of executions; a refused target is answered with 200 and allowed false.',
  'If the clock skips the time of day, the run is later by the skipped time; if the clock shows it twice, it runs once, the first time.',
  'If a zone skips a whole day, that day has no run of its own.',
  'Fields of the other type, unknown fields and unknown zones are refused with 400 invalid_schedule and the list of errors.',
  'One idempotencyKey for all runs would make every later run a replay of the first: give each run its own.',
];
