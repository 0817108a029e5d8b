// One try after another of runs that have started: each is an ordinary call with the key of its schedule and its number.
import { ERRORS } from '#src/domain/error-catalog.ts';
import { ALLOWED, isRefused, type Refused, reasonOf } from '#src/domain/refusal.ts';
import { catchUpEnd } from '#src/domain/schedule/commands.ts';
import { RUN_TIMES } from '#src/domain/schedule/limits.ts';
import { readSealedRequest } from '#src/domain/schedule/sealed.ts';
import type { DefinedSchedule, Ticket } from '#src/domain/schedule/state.ts';
import { isOutage } from '#src/ports/outage.ts';
import { executeWebhook } from '#src/usecases/execution/execute-webhook.ts';
import type { Release } from '#src/usecases/execution/process-limits.ts';
import { load, SCHEDULE, type View } from '#src/usecases/process/stream.ts';
import { definedView, endRun, forgetRun } from './end-run.ts';
import type { ScheduleDeps } from './quote.ts';

/** Between two tries of a run that cannot be executed now. */
const AGAIN_MS = 5000;
/** Whose places to be verified all runs share: as many as one client address has. */
const CLIENT = 'runs of schedules';

/** When a run is tried again, monotonic ms, and why it could not be executed, a code; null: it is not known. */
type Tried = {
  readonly again: number;
  readonly reason: string | null;
  /** A call has failed, and may continue behind its answer. */
  readonly continues: boolean;
};

/** The runs that this process executes. */
export class RunTries {
  readonly #deps: ScheduleDeps;
  /** By job. */
  readonly #active = new Map<string, Promise<void>>();
  /** Runs that are not over, by job. */
  readonly #tried = new Map<string, Tried>();

  constructor(deps: ScheduleDeps) {
    this.#deps = deps;
  }

  isInProgress(jobId: string): boolean {
    return this.#active.has(jobId);
  }

  tried(jobId: string): Tried | null {
    return this.#tried.get(jobId) ?? null;
  }

  /** The run is over. */
  forget(jobId: string): void {
    this.#tried.delete(jobId);
  }

  /** Resolves when no run is in progress here. */
  async settled(): Promise<void> {
    await Promise.all(this.#active.values());
  }

  begin({ state: { defined } }: View<DefinedSchedule>, ticket: Ticket, place: Release): void {
    const { logger } = this.#deps;
    const { jobId } = ticket;
    this.#willTry(jobId, null);
    const done = this.#execute(defined, ticket)
      .catch((cause: unknown) => {
        this.#willTry(jobId, null, true);
        if (!isOutage(cause))
          logger.bug('a run of a schedule failed; it is tried again while it may start', { jobId, cause });
      })
      .finally(() => {
        this.#active.delete(jobId);
        place();
      });
    this.#active.set(jobId, done);
  }

  #willTry(jobId: string, reason: string | null, continues = this.tried(jobId)?.continues ?? false): void {
    this.#tried.set(jobId, { again: this.#deps.clock.monotonic() + AGAIN_MS, reason, continues });
  }

  async #execute(defined: DefinedSchedule['defined'], ticket: Ticket): Promise<void> {
    const { clock, vault, authorizations, payments } = this.#deps;
    const { scheduleId } = defined;
    const { run, jobId, dueAt, sealed } = ticket;
    const [webhook, signed] = await Promise.all([
      vault.take(defined.sealed),
      sealed === null ? null : vault.take(sealed),
    ]);
    if (webhook === null || (sealed !== null && signed === null))
      return this.#end(ticket, scheduleId, 'lost');
    const presented = signed === null ? null : await authorizations.open(signed);
    // A run that nothing pays for is none where calls are charged.
    const isUnpaid = presented === null && payments.mode !== 'demo';
    if (isUnpaid || (presented !== null && isRefused(presented)))
      return this.#end(ticket, scheduleId, 'terms_changed');
    const payer = presented?.payer ?? 'demo';
    const execution = await executeWebhook(this.#deps, {
      request: readSealedRequest(webhook),
      route: 'execute/webhook',
      decisionId: null,
      decisionHash: null,
      approval: ALLOWED,
      presented,
      payer,
      client: CLIENT,
      via: null,
      run: { jobId, schedule: { id: scheduleId, run, dueAt }, notAfter: notAfter({ defined }, ticket) },
    });
    if (isRefused(execution)) {
      this.#willTry(jobId, skipReason(execution));
      const mayStart = clock.now() <= notAfter({ defined }, ticket);
      if (isTriedAgain(execution) && mayStart) return;
      return this.#end(ticket, scheduleId, skipReason(execution));
    }
    const view = definedView(await load(this.#deps, SCHEDULE, scheduleId));
    if (view !== null) await forgetRun(this.#deps, view, ticket);
    this.#tried.delete(jobId);
  }

  /** If another process writes to the schedule first, or the run may still start there, a later look ends it. */
  async #end({ jobId }: Ticket, scheduleId: string, reason: string): Promise<void> {
    const view = definedView(await load(this.#deps, SCHEDULE, scheduleId));
    const ticket = view?.state.tickets.find((one) => one.jobId === jobId);
    const isAlone = this.#deps.exclusive && this.tried(jobId)?.continues !== true;
    const after = view && ticket ? await endRun(this.#deps, view, ticket, reason, isAlone) : null;
    if (view === null || ticket === undefined || (after !== null && after !== view))
      this.#tried.delete(jobId);
    else this.#willTry(jobId, reason);
  }
}

/** Unix ms: no job of the run starts later. */
export const notAfter = ({ defined }: Pick<DefinedSchedule, 'defined'>, ticket: Ticket): number =>
  catchUpEnd(defined, ticket) + RUN_TIMES.startGraceMs;

/** A refusal that a repeat may reverse. */
function isTriedAgain({ refused, details }: Refused): boolean {
  const isRetryable = typeof details === 'object' && details !== null && 'retryable' in details;
  return (
    ERRORS[refused].status === 429 ||
    refused === 'idempotency_in_progress' ||
    (isRetryable && details.retryable === true)
  );
}

/** Of a run whose execution is refused. */
function skipReason(refusal: Refused): string {
  const { refused } = refusal;
  if (isTriedAgain(refusal)) return 'missed';
  return refused.startsWith('target_') || refused === 'unsafe_target' ? 'target_refused' : reasonOf(refusal);
}
