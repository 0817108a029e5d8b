// Executes runs of schedules that have started: opens what was sealed for them, and hands it to the paid execution.
import { isUnresolvedNow } from '#src/domain/destination/policy.ts';
import { ALLOWED, isRefused, type RefusalCode, type Refused, reasonOf } from '#src/domain/refusal.ts';
import { catchUpEnd } from '#src/domain/schedule/commands.ts';
import { RUN_TIMES } from '#src/domain/schedule/limits.ts';
import { type PaymentHeader, readSealedHeader, readSealedRequest } from '#src/domain/schedule/sealed.ts';
import type { DefinedSchedule, Ticket } from '#src/domain/schedule/state.ts';
import { isOutage } from '#src/ports/outage.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import { executeWebhook } from '#src/usecases/execution/execute-webhook.ts';
import { load, SCHEDULE, type View } from '#src/usecases/process/stream.ts';
import { BegunRuns } from './begun-runs.ts';
import { definedView, endRun, forgetRun } from './end-run.ts';
import type { ScheduleDeps } from './quote.ts';

export type RunDeps = ScheduleDeps & {
  /** Reads a payment header again, as a route does. */
  readonly readPayment: (header: PaymentHeader) => Promise<PresentedPayment | Refused>;
};

/** Runs in progress in one process. */
const ACTIVE_MAX = 128;

/** A refusal that a repeat may reverse. */
const AGAIN: ReadonlySet<RefusalCode> = new Set([
  'too_many_in_flight',
  'rate_limited',
  'idempotency_in_progress',
]);

const isPassing = (refusal: Refused): boolean => AGAIN.has(refusal.refused) || isUnresolvedNow(refusal);

/** Of a run whose execution is refused for good. */
function skipReason(refusal: Refused): string {
  const { refused } = refusal;
  if (isPassing(refusal)) return 'missed';
  return refused.startsWith('target_') || refused === 'unsafe_target' ? 'target_refused' : reasonOf(refusal);
}

/** The runs that this process executes. */
export class RunExecutor {
  readonly #deps: RunDeps;
  /** By job. */
  readonly #active = new Map<string, Promise<void>>();
  readonly begun: BegunRuns;

  constructor(deps: RunDeps) {
    this.#deps = deps;
    this.begun = new BegunRuns(deps.clock);
  }

  /** No further run is begun here: calls that are made now need the rest of what is in flight at most. */
  isFull(): boolean {
    return this.free() <= 0;
  }

  /** How many runs may still be begun here. */
  free(): number {
    return ACTIVE_MAX - this.#active.size;
  }

  isActive(jobId: string): boolean {
    return this.#active.has(jobId);
  }

  /** Resolves when no run is in progress here. */
  async settled(): Promise<void> {
    await Promise.all(this.#active.values());
  }

  /** Executes the run, unless it is executed here already. */
  begin(view: View<DefinedSchedule>, ticket: Ticket): void {
    const { logger } = this.#deps;
    const { jobId } = ticket;
    this.begun.remember(jobId, view.state.defined.scheduleId);
    const done = this.#execute(view, ticket)
      .catch((cause: unknown) => {
        if (!isOutage(cause))
          logger.bug('a run of a schedule failed; it is tried again while it may start', { jobId, cause });
      })
      .finally(() => this.#active.delete(jobId));
    this.#active.set(jobId, done);
  }

  async #execute({ state: { defined } }: View<DefinedSchedule>, ticket: Ticket): Promise<void> {
    const { clock, vault } = this.#deps;
    const { run, jobId, dueAt, sealed } = ticket;
    const [webhook, header] = await Promise.all([
      vault.take(defined.sealed),
      sealed === null ? null : vault.take(sealed),
    ]);
    if (webhook === null || (sealed !== null && header === null))
      return this.#end(ticket, defined.scheduleId, 'lost');
    const presented = header === null ? null : await this.#deps.readPayment(readSealedHeader(header));
    if (presented !== null && isRefused(presented))
      return this.#end(ticket, defined.scheduleId, 'terms_changed');
    const payer = presented?.payer ?? 'demo';
    const schedule = { id: defined.scheduleId, run, dueAt };
    const startBefore = catchUpEnd(defined, ticket) + RUN_TIMES.startGraceMs;
    const execution = await executeWebhook(this.#deps, {
      request: readSealedRequest(webhook),
      route: 'execute/webhook',
      decisionId: null,
      decisionHash: null,
      approval: ALLOWED,
      presented,
      payer,
      client: `${defined.scheduleId} ${payer}`,
      via: null,
      ticket: { jobId, schedule, startBefore },
    }).catch((cause: unknown) => {
      this.begun.remember(jobId, defined.scheduleId, { continues: true });
      throw cause;
    });
    this.begun.remember(jobId, defined.scheduleId);
    if (!isRefused(execution)) {
      const view = definedView(await load(this.#deps, SCHEDULE, defined.scheduleId));
      if (view !== null) await forgetRun(this.#deps, view, ticket);
      this.begun.forget(jobId);
      return;
    }
    if (isPassing(execution) && clock.now() <= startBefore) return;
    await this.#end(ticket, defined.scheduleId, skipReason(execution));
  }

  /** If another process writes to the schedule first, or the run may still start there, a later look ends it. */
  async #end({ jobId }: Ticket, scheduleId: string, reason: string): Promise<void> {
    const view = definedView(await load(this.#deps, SCHEDULE, scheduleId));
    const ticket = view?.state.tickets.find((one) => one.jobId === jobId);
    if (view === null || ticket === undefined) return this.begun.forget(jobId);
    const startsElsewhere = !this.#deps.exclusive || this.begun.find(jobId)?.continues === true;
    const after = await endRun(this.#deps, view, ticket, reason, startsElsewhere);
    if (after === null || after === view) this.begun.remember(jobId, scheduleId, { reason });
    else this.begun.forget(jobId);
  }
}
