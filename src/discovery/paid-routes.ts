// Request bodies of the two paid routes: schemas as enforced, and examples. Prices come from the configuration.

import { GuidedRequest } from '#src/domain/decision/requests.ts';
import type { Route } from '#src/domain/event-fields.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { RUN_TIMES, SCHEDULE_LIMITS } from '#src/domain/schedule/limits.ts';
import { ScheduleRequest } from '#src/domain/schedule/plan.ts';
import { ROUTES, type RouteFacts, SCHEDULE_ROUTES } from './routes.ts';
import { SCHEDULE_ANSWER_EXAMPLE, SCHEDULE_REQUEST_EXAMPLE } from './schedule-examples.ts';

/** `description`: at most 450 characters. */
export type PaidRouteFacts = RouteFacts & {
  /** Its name in documents. */
  readonly actionId: string;
  /** Path of the service's icon. */
  readonly icon: string;
  /** JSON Schema of the body, without references. */
  readonly inputSchema: typeof WebhookRequest | typeof GuidedRequest;
  readonly inputExample: WebhookRequest | GuidedRequest;
  readonly outputExample: Readonly<Record<string, unknown>>;
};

const JOB = 'job_5nv9ky01m5kpd17vfh4594a4hh';
const RECEIPT = 'rcpt_57511t2hgk42624th4s0cxrb5w';
const DECISION = 'dec_492x9vxap1wmxyfmf30nvbka09';

export const ACTION: WebhookRequest = {
  url: 'https://example.com/hook',
  method: 'POST',
  body: { event: 'order.paid', order: 17 },
  idempotencyKey: 'order-17',
};

const executed = (decisionId: string | null) => ({
  mode: 'x402',
  idempotentReplay: false,
  job: {
    id: JOB,
    status: 'succeeded',
    attempts: 1,
    decisionId,
    responseStatus: 200,
    errorCategory: null,
    reason: null,
    createdAt: '2026-01-02T03:04:06.000Z',
    completedAt: '2026-01-02T03:04:06.312Z',
  },
  receipt: { id: RECEIPT, replay: false },
});

/** The members of a success that the next step needs. */
export const ANSWER_IN_SHORT = {
  job: { id: JOB, status: 'succeeded', responseStatus: 200 },
  receipt: { id: RECEIPT },
};

export const PAID_ROUTES: Readonly<Record<Route, PaidRouteFacts>> = {
  'execute/webhook': {
    ...ROUTES.execute,
    actionId: 'execute.webhook',
    icon: ROUTES.favicon.path,
    inputSchema: WebhookRequest,
    inputExample: ACTION,
    outputExample: executed(null),
  },
  'execute/guided-webhook': {
    ...ROUTES.executeGuided,
    actionId: 'execute.guided_webhook',
    icon: ROUTES.favicon.path,
    inputSchema: GuidedRequest,
    inputExample: { decisionId: DECISION, action: ACTION },
    outputExample: executed(DECISION),
  },
};

/** In the order of all lists. */
export const PAID_LIST = (['execute/webhook', 'execute/guided-webhook'] as const).map(
  (name) => [name, PAID_ROUTES[name]] as const,
);

/** What the 402 of a new schedule asks for while its run is not known: for one that is due now. */
export const UNKNOWN_RUN = {
  path: SCHEDULE_ROUTES.createSchedule.path,
  description: SCHEDULE_ROUTES.createSchedule.summary,
  maxTimeoutSeconds: SCHEDULE_LIMITS.catchUpSeconds.default + RUN_TIMES.authorizationMarginSeconds,
  run: null,
  inputSchema: ScheduleRequest,
  inputExample: SCHEDULE_REQUEST_EXAMPLE,
  outputExample: SCHEDULE_ANSWER_EXAMPLE,
};
