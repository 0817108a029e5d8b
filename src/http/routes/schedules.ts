// Paid schedules: definition, one more run, reading, cancellation. A payment is taken here and settled when its run is due.
import { Type } from '@sinclair/typebox';
import type { RunRecord, ScheduleRecord } from '#projections/schedule/query.ts';
import { usd } from '#src/discovery/facts.ts';
import { UNKNOWN_RUN } from '#src/discovery/paid-routes.ts';
import { SCHEDULE_ROUTES as ROUTES } from '#src/discovery/routes.ts';
import { SCHEDULE_ANSWER_EXAMPLE, SCHEDULE_REQUEST_EXAMPLE } from '#src/discovery/schedule-examples.ts';
import { ID_PATTERN } from '#src/domain/ids.ts';
import { bodyWarnings } from '#src/domain/job/webhook-request.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { ALLOWED, type Allowed, isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import type { upcomingRuns } from '#src/domain/schedule/commands.ts';
import { PaidSchedule, ScheduleRequest } from '#src/domain/schedule/plan.ts';
import { Closed, Count, Instant, Link, Nullable, OneOf, Warnings } from '#src/domain/schema-parts.ts';
import type { ProgressOf, Settings } from '#src/http/deps.ts';
import { type Endpoint, endpoint, PART_UNAVAILABLE } from '#src/http/endpoint.ts';
import { findForSure } from '#src/http/records.ts';
import { refuseKey } from '#src/http/request/idempotency-header.ts';
import {
  BODY_ERRORS,
  limitRate,
  type ParseDeps,
  parsePaidRequest,
  rateRule,
  readBody,
} from '#src/http/request/parse-request.ts';
import { type GateDeps, paymentGate, type RouteRefused } from '#src/http/request/payment-gate.ts';
import { contextOf, countedAs } from '#src/http/request/request-context.ts';
import { faultsIn, schemaCheck } from '#src/http/request/validation.ts';
import { json } from '#src/http/response/json.ts';
import { type Links, linksFrom } from '#src/http/response/links.ts';
import type { TicketOffer } from '#src/ports/payment-protocol.ts';
import type { Bought, Buyer } from '#src/usecases/schedules/buy-run.ts';
import type { CancelledSchedule } from '#src/usecases/schedules/end-run.ts';
import { type Quote, scheduleNotFound } from '#src/usecases/schedules/quote.ts';

export type SchedulesDeps = {
  quoteSchedule(request: ScheduleRequest): Promise<Quote | Refused>;
  quoteRun(row: ScheduleRecord): Quote | Refused;
  create(request: ScheduleRequest, buyer: Buyer): Promise<Bought | Refused>;
  fund(scheduleId: string, buyer: Buyer): Promise<Bought | Refused>;
  cancel(scheduleId: string, token: string): Promise<CancelledSchedule | Refused>;
  upcoming(schedule: Bought['schedule']): ReturnType<typeof upcomingRuns>;
  /** Throws `Fault` if the read models are unavailable. */
  find(scheduleId: string): Promise<ScheduleRecord | null>;
} & ProgressOf<'reachedHead'>;

type Deps = SchedulesDeps &
  ParseDeps &
  GateDeps &
  Settings<'baseUrl' | 'offer' | 'rateLimitPerMinute'> & { clientKey(address: string): string };

const Id = Type.String({ pattern: ID_PATTERN.schedule });
const RunState = OneOf('funded', 'unfunded', 'running', 'executed', 'skipped');
const ScheduleLinks = Closed({ schedule: Link, runs: Link });

export const BoughtResponse = Closed({
  scheduleId: Id,
  cancelToken: Nullable(
    Type.String({
      description:
        'Cancels the schedule: keep it, it is stored as a hash only. null if the schedule was defined before.',
    }),
  ),
  status: OneOf('active', 'paused', 'cancelled'),
  run: Closed({ n: Type.Integer({ minimum: 1 }), dueAt: Instant }, 'The run that this payment is for.'),
  schedule: PaidSchedule,
  nextRuns: Type.Array(
    Closed({ n: Type.Integer({ minimum: 1 }), dueAt: Instant, state: OneOf('funded', 'unfunded') }),
  ),
  fundedRuns: Count,
  warnings: Type.Optional(
    Type.Array(Warnings.items, { description: 'Of the request that is scheduled, when it is defined.' }),
  ),
  links: ScheduleLinks,
});

export const RunShown = Closed({
  n: Type.Integer({ minimum: 1 }),
  state: RunState,
  reason: Nullable(
    Type.String({
      description:
        'Why the run was skipped: missed, not_funded, overlap, target_refused, terms_changed, lost, cancelled, or the code that the payment was refused with. It was not charged then, except where the reason is unserved: the operator returns what was settled.',
    }),
  ),
  dueAt: Instant,
  startedAt: Nullable(Instant),
  lateByMs: Nullable(Count),
  links: Nullable(Closed({ job: Link, receipt: Nullable(Link) })),
});

export const ScheduleResponse = Closed({
  scheduleId: Id,
  status: OneOf('active', 'paused', 'completed', 'cancelled'),
  schedule: PaidSchedule,
  catchUpSeconds: Count,
  createdAt: Instant,
  endsAt: Instant,
  fundedRuns: Count,
  runs: Type.Array(RunShown),
  links: ScheduleLinks,
});

export const CancelResponse = Closed({
  scheduleId: Id,
  status: Type.Literal('cancelled'),
  underWay: Type.Array(
    Closed({ n: Type.Integer({ minimum: 1 }), jobId: Type.String({ pattern: ID_PATTERN.job }) }),
    {
      description:
        'Runs that had begun: their payment is reserved or they are free. They end, and are charged once.',
    },
  ),
  links: ScheduleLinks,
});

const check = schemaCheck(ScheduleRequest);
const IS_ID = new RegExp(ID_PATTERN.schedule);

const scheduleLinks = (links: Links, id: string) => ({
  schedule: links.at(`/api/schedules/${id}`),
  runs: links.at(`/api/schedules/${id}/runs`),
});

export function scheduleRoutes(deps: Deps): Endpoint[] {
  const links = linksFrom(deps.settings.baseUrl);
  return [
    createEndpoint(deps, links),
    fundEndpoint(deps, links),
    readEndpoint(deps, links),
    cancelEndpoint(deps, links),
  ];
}

const shownRun = ({ run: n, dueAt }: Quote['run']) => ({ n, dueAt });

const rates = ({ settings }: Deps) => [rateRule('schedules', settings.rateLimitPerMinute)];

/** A request that names a schedule: within its rate, by an id that one may have. */
async function admit(deps: Deps, request: Request, id: string): Promise<Allowed | Refused> {
  const limited = await limitRate(deps.quota, rates(deps), contextOf(request));
  if (isRefused(limited)) return limited;
  return IS_ID.test(id) ? ALLOWED : scheduleNotFound();
}

const ID = { description: 'Identifier of the schedule.', pattern: ID_PATTERN.schedule };

/** The token of a schedule that the request sends; null: none. */
const tokenIn = ({ headers }: Request): string | null =>
  /^Bearer ([A-Za-z0-9_-]{43})$/i.exec(headers.get('authorization') ?? '')?.[1] ?? null;

const buyerOf = (deps: Deps, request: Request, payer: Pick<Buyer, 'presented' | 'payer'>): Buyer => ({
  ...payer,
  token: tokenIn(request),
  client: deps.clientKey(countedAs(contextOf(request).client)),
});

const PAID_ERRORS = {
  ...BODY_ERRORS,
  400: 'The request is invalid or its target is refused: nothing was stored.',
  409: 'The payment is in use for another request, or the schedule has no run to pay for.',
  429: 'Rate limited, or too many runs that are not over.',
  503: PART_UNAVAILABLE,
};

function createEndpoint(deps: Deps, links: Links): Endpoint {
  const gate = paymentGate(deps, 'execute/webhook');
  const rules = { check, rates: rates(deps), judgeHeaders: refuseKey };
  const { summary, description } = ROUTES.createSchedule;
  const offerOf = (quote: Quote | null): TicketOffer =>
    quote === null
      ? UNKNOWN_RUN
      : {
          ...UNKNOWN_RUN,
          description: `${summary}: run 1, due ${quote.run.dueAt}. Settled then, or never.`,
          maxTimeoutSeconds: quote.maxTimeoutSeconds,
          run: shownRun(quote.run),
        };
  async function refuse(refusal: RouteRefused, body: unknown): Promise<Response> {
    const quote = check.matches(body) ? await deps.quoteSchedule(body) : null;
    if (quote === null || !isRefused(quote)) return gate.refuse(refusal, offerOf(quote));
    return gate.refuse({ ...refusal, hints: faultsIn(quote) }, offerOf(null));
  }
  const operation = {
    body: ScheduleRequest,
    example: SCHEDULE_REQUEST_EXAMPLE,
    answers: { 201: [description, BoughtResponse] },
    paidUsd: usd(deps.settings.offer),
    errors: PAID_ERRORS,
  } as const;
  return endpoint(ROUTES.createSchedule, operation, async ({ request }) => {
    const parsed = await parsePaidRequest(deps, request, rules, gate);
    if (isRefused(parsed)) return refuse(parsed, 'body' in parsed ? parsed.body : null);
    const bought = await deps.create(parsed.body, buyerOf(deps, request, parsed));
    if (isRefused(bought)) return refuse(bought, parsed.body);
    const warnings = bodyWarnings(parsed.body.webhook);
    const warned = warnings.length === 0 ? {} : { warnings };
    return json(201, { ...shown(deps, links, bought), ...warned });
  });
}

function fundEndpoint(deps: Deps, links: Links): Endpoint {
  const gate = paymentGate(deps, 'execute/webhook');
  async function refuse(refusal: RouteRefused, id: string): Promise<Response> {
    if (refusal.refused !== 'payment_required') return gate.refuse(refusal);
    const found = await findSurely(deps, id);
    const quote = isRefused(found) ? found : deps.quoteRun(found);
    if (isRefused(quote)) return gate.refuse(quote);
    const { run, maxTimeoutSeconds } = quote;
    return gate.refuse(refusal, {
      path: `/api/schedules/${id}/runs`,
      description: `${ROUTES.fundRun.summary}: run ${run.run}, due ${run.dueAt}. Settled then, or never.`,
      maxTimeoutSeconds,
      run: shownRun(run),
      inputSchema: Type.Object({}),
      inputExample: {},
      outputExample: SCHEDULE_ANSWER_EXAMPLE,
    });
  }
  const operation = {
    id: ID,
    answers: { 201: [ROUTES.fundRun.description, BoughtResponse] },
    paidUsd: usd(deps.settings.offer),
    errors: {
      ...PAID_ERRORS,
      403: 'Neither the payer of run 1 nor the token of the schedule: nothing was stored.',
      404: 'No such schedule.',
    },
  } as const;
  return endpoint(ROUTES.fundRun, operation, async ({ request, id }) => {
    const admitted = await admit(deps, request, id);
    if (isRefused(admitted)) return admitted;
    // What is in the body means nothing.
    const body = await readBody(request, deps.clock, LIMITS.requestBodyBytes.max);
    if (!(body instanceof Uint8Array)) return body;
    const unkeyed = refuseKey(request.headers);
    if (isRefused(unkeyed)) return unkeyed;
    if (!gate.isOpen(request)) return refuse(refused('payment_required', 'This run has to be paid for.'), id);
    const payer = await gate.identify(request);
    if (isRefused(payer)) return refuse(payer, id);
    const bought = await deps.fund(id, buyerOf(deps, request, payer));
    return isRefused(bought) ? refuse(bought, id) : json(201, shown(deps, links, bought));
  });
}

function shown(
  deps: Deps,
  links: Links,
  { schedule, run, cancelToken }: Bought,
): typeof BoughtResponse.static {
  const { defined, status, tickets } = schedule;
  const nextRuns = deps.upcoming(schedule);
  return {
    scheduleId: defined.scheduleId,
    cancelToken,
    status,
    run: shownRun(run),
    schedule: defined.schedule,
    nextRuns: nextRuns.map(({ run: n, dueAt, state }) => ({ n, dueAt, state })),
    fundedRuns: tickets.filter((ticket) => ticket.status === 'funded').length,
    links: scheduleLinks(links, defined.scheduleId),
  };
}

const findSurely = (deps: Deps, id: string) =>
  findForSure(
    deps.progress,
    () => deps.find(id),
    scheduleNotFound(),
    () => false,
  );

function readEndpoint(deps: Deps, links: Links): Endpoint {
  const operation = {
    id: ID,
    answers: { 200: [ROUTES.schedule.summary, ScheduleResponse] },
    errors: { 404: 'No such schedule.', 429: 'Rate limited.', 503: PART_UNAVAILABLE },
  } as const;
  return endpoint(ROUTES.schedule, operation, async ({ request, id }) => {
    const admitted = await admit(deps, request, id);
    if (isRefused(admitted)) return admitted;
    const found = await findSurely(deps, id);
    return isRefused(found) ? found : scheduleShown(found, links);
  });
}

const UNPAID = { reason: null, startedAt: null, lateByMs: null, links: null } as const;

function runShown(record: RunRecord, links: Links): typeof RunShown.static {
  const { run: n, jobId, dueAt, state, reason, startedAt, lateByMs, receiptId } = record;
  const hasJob = state === 'running' || state === 'executed';
  const receipt = receiptId === null ? null : links.receipt(receiptId);
  return {
    n,
    state: state === 'started' ? 'running' : state,
    reason,
    dueAt,
    startedAt,
    lateByMs,
    links: hasJob && jobId !== null ? { job: links.job(jobId), receipt } : null,
  };
}

function scheduleShown(found: ScheduleRecord, links: Links): typeof ScheduleResponse.static {
  const { scheduleId, status, schedule, catchUpSeconds, definedAt, endsAt, nextRun, nextDueAt, open } = found;
  const runs = [...found.runs].reverse().map((run) => runShown(run, links));
  if (nextRun !== null && nextDueAt !== null)
    runs.push({ ...UNPAID, n: nextRun, dueAt: nextDueAt, state: 'unfunded' });
  return {
    scheduleId,
    status: status === 'active' && nextRun === null && open === 0 ? 'completed' : status,
    schedule,
    catchUpSeconds,
    createdAt: definedAt,
    endsAt,
    fundedRuns: found.runs.filter(({ state }) => state === 'funded').length,
    runs,
    links: scheduleLinks(links, scheduleId),
  };
}

function cancelEndpoint(deps: Deps, links: Links): Endpoint {
  const operation = {
    id: ID,
    answers: { 200: ['It is cancelled.', CancelResponse] },
    errors: { 404: 'No such schedule, or not its token.', 429: 'Rate limited.', 503: PART_UNAVAILABLE },
  } as const;
  return endpoint(ROUTES.cancelSchedule, operation, async ({ request, id }) => {
    const admitted = await admit(deps, request, id);
    if (isRefused(admitted)) return admitted;
    const token = tokenIn(request);
    if (token === null) return scheduleNotFound();
    const cancelled = await deps.cancel(id, token);
    if (isRefused(cancelled)) return cancelled;
    return {
      scheduleId: id,
      status: 'cancelled',
      underWay: cancelled.underWay.map(({ run: n, jobId }) => ({ n, jobId })),
      links: scheduleLinks(links, id),
    } satisfies typeof CancelResponse.static;
  });
}
