// The free surfaces as the catalog shows them, and a document of each: browser handoff, schedules, secrets policy.
import { addressOf, endpointSchema, endpointShown, openDocument, Text } from '#src/discovery/document.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { NEVER_SEND, NEVER_SEND_TEXT } from '#src/discovery/guidance.ts';
import { ACTION } from '#src/discovery/paid-routes.ts';
import { ROUTES, type RouteFacts, SCHEDULE_ROUTES } from '#src/discovery/routes.ts';
import { SCHEDULE_REQUEST_EXAMPLE } from '#src/discovery/schedule-examples.ts';
import { LIMITS, type Limit } from '#src/domain/limits.ts';
import { HANDOFF_ACTIONS, HandoffRequest } from '#src/domain/planning/handoff.ts';
import { portableSchema } from '#src/domain/portable-schema.ts';
import { SCHEDULE_LIMITS } from '#src/domain/schedule/limits.ts';
import { ScheduleRequest } from '#src/domain/schedule/plan.ts';
import { SchedulePreviewRequest, scheduleCharge } from '#src/domain/schedule/preview.ts';
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
  return { id, status, category, title, description, endpoint: endpointShown(route) };
};

const scheduledActions = {
  ...surface('scheduled.webhook', 'preview-only', 'automation', ROUTES.schedulePreview),
  availability:
    'Durable paid scheduling is not active. It is planned to charge once per executed run, not per schedule definition, ' +
    'and to answer with a schedule id and the links of each run.',
};

const ACTIVE: typeof scheduledActions = {
  ...surface('scheduled.webhook', 'active', 'automation', SCHEDULE_ROUTES.createSchedule),
  availability:
    'Each run is paid for by an authorization of its own, verified when it is bought and settled when the run is due, or never. A schedule costs nothing; a run that is skipped is not charged.',
};

/** As this deployment offers them. */
export const scheduledActionsOf = ({ schedules }: Facts): typeof scheduledActions =>
  schedules === undefined ? scheduledActions : ACTIVE;

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
  requestSchema: portableSchema(HandoffRequest),
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
  {
    title: 'Mondays and Thursdays at nine in Berlin',
    request: {
      webhook: ACTION,
      schedule: {
        type: 'weekly',
        daysOfWeek: ['monday', 'thursday'],
        timeOfDay: '09:00',
        timezone: 'Europe/Berlin',
      },
    },
  },
  {
    title: 'Every six hours',
    request: {
      webhook: ACTION,
      schedule: { type: 'interval', everyMinutes: 360, startAt: '2026-01-01T00:00:00Z' },
    },
  },
];

export const scheduleCapabilities = openDocument([ROUTES.scheduleCapabilities], (facts) => ({
  ...scheduledActionsOf(facts),
  ...(facts.schedules === undefined
    ? {
        executionModel: 'preview-only',
        requestSchema: portableSchema(SchedulePreviewRequest),
        requestsPerMinute: facts.rateLimitPerMinute,
        rules: [...SCHEDULE_RULES, ONE_KEY_A_RUN],
        paymentPolicy: scheduleCharge(null),
        // Not a route of this service.
        planned: { method: 'POST', path: '/api/schedules/webhook', active: false },
        examples: SCHEDULE_EXAMPLES,
      }
    : {
        executionModel: 'per-executed-run',
        requestSchema: portableSchema(ScheduleRequest),
        requestsPerMinute: facts.rateLimitPerMinute,
        rules: [...SCHEDULE_RULES, ...PAID_SCHEDULE_RULES],
        paymentPolicy: scheduleCharge(facts.offer.price),
        price: facts.offer.price,
        horizonDays: facts.schedules.horizonDays,
        limits: Object.entries<Limit>(SCHEDULE_LIMITS).map(([name, limit]) => ({ name, ...limit })),
        routes: Object.values(SCHEDULE_ROUTES).map(endpointShown),
        examples: [{ title: 'Every day at nine in Berlin', request: SCHEDULE_REQUEST_EXAMPLE }],
      }),
}));

const PAID_SCHEDULE_RULES = [
  'POST /api/schedules/webhook defines a schedule and takes the payment of run 1; each POST /api/schedules/{id}/runs takes that of the first run without one. The 402 of both is of one run: its maxTimeoutSeconds reaches to that run, and its extension scheduled-run has the run {n, dueAt}, to be compared before it is signed.',
  'A payment is verified when it is taken and settled when its run is due, or never. It is bound to that run: for anything else it is 409 payment_reused. A validAfter shortly before the run makes an earlier charge impossible.',
  'The due time of a run is fixed when it is paid for.',
  'A run may start catchUpSeconds late; lateByMs in its receipt says how late it was. Later it is skipped: nothing is caught up after that.',
  'A run that is skipped is not charged, and its reason is recorded: not_funded, missed, overlap (the run before it has not ended), target_refused, terms_changed (payee or network), lost, cancelled, or the code of the facilitator. With the reason unserved it may have been charged, and the operator returns that. The price is that of the purchase.',
  'After three runs in a row without a payment the schedule is paused until the next payment.',
  'webhook has no idempotencyKey: each run is executed once, by its number.',
  'DELETE /api/schedules/{id} with authorization: Bearer and the cancelToken ends it. A run in progress ends; no other payment is settled.',
  'The request and the payment headers are stored encrypted; each key is deleted after its run, its skip or the cancellation.',
];

const ONE_KEY_A_RUN =
  'One idempotencyKey for all runs would make every later run a replay of the first: give each run its own.';

const SCHEDULE_RULES = [
  'Types once (runAt), daily (timeOfDay, timezone), weekly (also daysOfWeek) and interval (everyMinutes, startAt). Runs are at least 60 s apart.',
  `The preview shows the next ${LIMITS.scheduleNextRuns.max} runs, and the one of a schedule that runs once.`,
  'webhook is the body of a paid execution, checked with the policy of executions; a refused target is answered with 200 and allowed false.',
  'If the clock skips the time of day, the run is later by the skipped time; if the clock shows it twice, it runs once, the first time.',
  'If a zone skips a whole day, that day has no run of its own.',
  'Fields of another type, unknown fields and unknown zones are refused with 400 invalid_schedule and the list of errors.',
];

// ── how secrets are handled: what to send, what is stored, and who sees it ──────────────────────────

export const secretsPolicy = openDocument([ROUTES.secretsPolicy], (facts) => ({
  ...secretStorage,
  send: Object.entries(SEND).map(([what, how]) => ({ what, how })),
  neverSend: [
    ...NEVER_SEND,
    'passwords of people, or anything that gives access to more than the one target',
  ],
  stored: STORED,
  notStored: NOT_STORED,
  shownTo: Object.entries(SHOWN_TO).map(([who, sees]) => ({ who, sees })),
  callerDuties: CALLER_DUTIES,
  keys: addressOf(facts, ROUTES.jwks),
}));

const SEND = {
  'Target-owned webhook secrets':
    'As part of url, if the target works that way (chat and automation hooks), or in a header that the target defines.',
  'Short-lived per-request credentials':
    'In headers, for instance authorization: Bearer with a short-lived token that has few rights.',
  'Signatures over your own body':
    'In a header of the target, or as the complete webhook-id, webhook-timestamp and webhook-signature, which are then sent instead of the relay’s.',
};

const STORED = [
  'Salted commitments (SHA-256) of the url, its origin, the sorted header names, the request body hash, the idempotencyKey, the response body hash, and of certificate and address of each attempt: the value cannot be guessed from them without the salt.',
  'A keyed hash (HMAC) of the complete request, to recognise repeats; also of the idempotencyKey and of the action of a decision.',
  'Method, times, statuses, sizes, error categories, phases and TLS version of each attempt.',
  'Of a payment: scheme, network, asset, amount, payTo, payer, nonce, expiry, transaction, and a hash of the payload.',
  'The client address: counted for rate limits, in memory or under a keyed hash, for at most a day.',
  'Of a decision: the buyer policy, its facts, and the recommendation.',
];

const NOT_STORED = [
  'The URL and any part of it, the host name included',
  'Header names and values',
  'Request and response bodies, and response headers (except the delay of a Retry-After)',
  'The idempotencyKey itself',
  'The payment signature and the payment header',
  'Any of these in logs, metrics or traces',
];

const SHOWN_TO = {
  'The target':
    'What you send it, and the headers of the relay with its signature. Never the payment or payer: payment headers are stripped.',
  'The name servers that the relay queries': 'The host name of the target.',
  'The payment facilitator and the chain': 'The payment. Never the request.',
  'The caller':
    'The execution response with disclosures, which open the commitments. A replay opens those of the request only.',
  'Anyone with a job or receipt id':
    'Method, attempts, times, statuses and commitments; in a receipt also the payment with its payer, which the chain shows as well.',
  'The public lists of proofs and decisions':
    'That a call was made, and its outcome. No target, header, body, hash, key or payer.',
};

const CALLER_DUTIES = [
  'Keep disclosures as secret as the url: they reveal it.',
  'Put no secret into idempotencyKey, x-request-id or the texts of a handoff: they are not kept secret.',
  'Revoke at the target what you sent by mistake: the relay has nothing to delete.',
];
