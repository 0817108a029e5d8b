// Starts runs of schedules when they are due. Any number of processes may look at the same run: its start is appended at the
// revision read, and its job is decided before, so that it is settled once and sent once, whichever process executes it.
import { sha256, utf8 } from '#src/domain/encoding.ts';
import { catchUpEnd, moveRun, passUnfunded, startRun } from '#src/domain/schedule/commands.ts';
import { RUN_TIMES } from '#src/domain/schedule/limits.ts';
import { type DefinedSchedule, type Ticket, UNFUNDED } from '#src/domain/schedule/state.ts';
import { isoNow } from '#src/lib/iso.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import { isOutage } from '#src/ports/outage.ts';
import { JOB, load, SCHEDULE, tryAppend, type View } from '#src/usecases/process/stream.ts';
import { definedView, endRun, forgetRun } from './end-run.ts';
import { type RunDeps, RunExecutor } from './execute-run.ts';
import { KeySweep } from './key-sweep.ts';
import { timeOf } from './quote.ts';

export type RunnerDeps = RunDeps & {
  /** Schedules with a run that is due by this time and not known as over: Unix ms. Only candidates: the streams decide. */
  readonly candidates: (untilMs: number) => Promise<readonly string[]>;
  /** Aborts when the process is asked to stop: no run is started any more. */
  readonly stopping: AbortSignalLike;
};

const LOOK_MS = 1000;
/** Between two looks while as many runs are in progress as there may be. */
const FULL_MS = 50;
const AHEAD_MS = 10_000;
/** Schedules that are looked at in parallel, so that their starts are committed together. */
const LOOKS_AT_ONCE = 32;
/** A run that another process has started and that has no job is taken over when nothing was written for so long. */
const TAKE_OVER_MS = 45_000;
/** Of the start of runs: how much later the last of so many due ones begins. */
const SPREAD_MS_PER_RUN = 2;

export class ScheduleRunner {
  readonly #deps: RunnerDeps;
  readonly #runs: RunExecutor;
  readonly #clock: SharedClock;
  readonly #keys: KeySweep;
  /** Since when, in Unix ms, no look has failed here; null: the last one did, or there was none. */
  #lookingSince: number | null = null;

  constructor(deps: RunnerDeps) {
    this.#deps = deps;
    this.#runs = new RunExecutor(deps);
    this.#clock = new SharedClock(deps);
    this.#keys = new KeySweep(deps);
  }

  /** Looks once a second until `stopping` aborts; resolves when the runs in progress have ended. */
  async run(): Promise<void> {
    const { clock, stopping } = this.#deps;
    while (!stopping.aborted) {
      await this.pass();
      await clock.sleep(this.#runs.isFull() ? FULL_MS : LOOK_MS, stopping);
    }
    await this.settled();
  }

  /** One look at the schedules that are due. Never throws. */
  async pass(): Promise<void> {
    const { clock, candidates } = this.#deps;
    const failed = failureLog(this.#deps);
    const since = this.#lookingSince ?? clock.now();
    this.#lookingSince = null;
    try {
      if (!(await this.#deps.recordIsWhole()) || (await this.#clock.differs())) return;
      const due = this.#runs.begun.withDueAgain(await candidates(clock.now() + AHEAD_MS));
      this.#lookingSince = since;
      const spreadMs = Math.min(RUN_TIMES.spreadMs, (due.length - 1) * SPREAD_MS_PER_RUN);
      for (let at = 0; at < due.length && !this.#runs.isFull(); ) {
        const next = due.slice(at, at + Math.min(LOOKS_AT_ONCE, this.#runs.free()));
        at += next.length;
        const looks = await Promise.allSettled(next.map((scheduleId) => this.#look(scheduleId, spreadMs)));
        for (const look of looks) if (look.status === 'rejected') throw look.reason;
      }
      this.#keys.sweepIfDue(failed);
    } catch (cause) {
      this.#lookingSince = null;
      failed(cause);
    }
  }

  /** Resolves when no run is in progress here. */
  async settled(): Promise<void> {
    await Promise.all([this.#runs.settled(), this.#keys.settled()]);
  }

  async #look(scheduleId: string, spreadMs: number): Promise<void> {
    const { log, logger } = this.#deps;
    try {
      let view = definedView(await load({ log }, SCHEDULE, scheduleId));
      this.#runs.begun.forgetOthers(scheduleId, view?.state.tickets ?? []);
      if (view === null) return;
      const passed = passUnfunded(view.state, timeOf(this.#deps));
      view = definedView(await tryAppend(this.#deps, SCHEDULE, view, passed));
      const tickets = [...(view?.state.tickets ?? [])].sort((a, b) => (a.dueAt < b.dueAt ? -1 : 1));
      for (const ticket of tickets) {
        if (view === null || this.#deps.stopping.aborted) return;
        if (this.#runs.isActive(ticket.jobId)) continue;
        view = await (ticket.status === 'funded'
          ? this.#lookAtFunded(view, ticket, spreadMs)
          : this.#lookAtStarted(view, ticket));
      }
    } catch (cause) {
      if (isOutage(cause)) throw cause;
      logger.bug('a schedule could not be looked at; this is repeated', { scheduleId, cause });
    }
  }

  /** Returns the schedule after it; null: another process wrote to it first. */
  async #lookAtFunded(
    view: View<DefinedSchedule>,
    ticket: Ticket,
    spreadMs: number,
  ): Promise<View<DefinedSchedule> | null> {
    const { state } = view;
    if (state.status === 'cancelled') return endRun(this.#deps, view, ticket, 'cancelled');
    const now = this.#deps.clock.now();
    const begin = Date.parse(ticket.dueAt) + spreadMs * fractionOf(ticket.jobId);
    if (now < begin || this.#runs.isFull()) return view;
    if (now > begin + LOOK_MS && isTooLate(state, ticket, now, this.#lookingSince))
      return missRun(this.#deps, view, ticket);
    if (ticket.validBefore !== null && ticket.validBefore <= now / 1000)
      return endRun(this.#deps, view, ticket, UNFUNDED);
    if (await runsAlready(this.#deps, state, ticket)) return endRun(this.#deps, view, ticket, 'overlap');
    const started = startRun(state, ticket, this.#deps.owner, isoNow(this.#deps));
    if (started === null) return view;
    const after = definedView(await tryAppend(this.#deps, SCHEDULE, view, [started]));
    if (after !== null) this.#runs.begin(after, ticket);
    return after;
  }

  async #lookAtStarted(view: View<DefinedSchedule>, ticket: Ticket): Promise<View<DefinedSchedule> | null> {
    const { jobId } = ticket;
    const job = await load(this.#deps, JOB, jobId);
    if (job.state.status === 'running') return view;
    if (job.state.status === 'completed') {
      await forgetRun(this.#deps, view, ticket);
      this.#runs.begun.forget(jobId);
      return view;
    }
    const now = this.#deps.clock.now();
    // A process with a wrong clock may have started it.
    if (now < Date.parse(ticket.dueAt)) return view;
    const end = catchUpEnd(view.state.defined, ticket);
    if (now > end + RUN_TIMES.endGraceMs)
      return endRun(this.#deps, view, ticket, this.#runs.begun.find(jobId)?.reason ?? 'missed');
    if (now > end + RUN_TIMES.startGraceMs) return view;
    const isMine = this.#runs.begun.isDueAgain(jobId) ?? isTakenOver(this.#deps, view);
    if (isMine && !this.#runs.isFull()) this.#runs.begin(view, ticket);
    return view;
  }
}

/** The clock of the store: of the database, or, of an embedded store, the own one without its jumps. */
class SharedClock {
  readonly #deps: RunnerDeps;
  #isHeld = false;

  constructor(deps: RunnerDeps) {
    this.#deps = deps;
  }

  /** A start by a clock that is set wrong would be early or late: it is held back until the clocks agree. */
  async differs(): Promise<boolean> {
    const { vault, clock, logger } = this.#deps;
    const shared = await vault.now();
    const differsMs = shared === null ? 0 : clock.now() - shared;
    const isHeld = Math.abs(differsMs) > RUN_TIMES.clockToleranceMs;
    if (isHeld && !this.#isHeld)
      logger.error(
        'the clock differs from that of the database, or has jumped ahead: no run of a schedule is started. Set it, or, if it is right now, restart the service',
        {
          differsMs,
        },
      );
    if (!isHeld && this.#isHeld) logger.info('the clock is right again: runs are started');
    this.#isHeld = isHeld;
    return isHeld;
  }
}

const failureLog =
  ({ logger }: RunnerDeps) =>
  (cause: unknown): void => {
    if (!isOutage(cause)) logger.bug('schedules could not be looked at; this is repeated', { cause });
  };

/**
 * Whether the catch-up of a run has ended. If no look has failed here since before it was due, it is late by the spread and
 * by the time between two looks only: then it may still start while its job may.
 */
function isTooLate({ defined }: DefinedSchedule, ticket: Ticket, now: number, lookingSince: number | null) {
  const wasUp = lookingSince !== null && lookingSince <= Date.parse(ticket.dueAt);
  return now > catchUpEnd(defined, ticket) + (wasUp ? RUN_TIMES.startGraceMs : 0);
}

/** Its payment is used for the next run, if it lives that long. */
async function missRun(
  deps: RunnerDeps,
  view: View<DefinedSchedule>,
  ticket: Ticket,
): Promise<View<DefinedSchedule> | null> {
  const moved = moveRun(view.state, ticket, timeOf(deps));
  if (moved === null) return endRun(deps, view, ticket, 'missed');
  return definedView(await tryAppend(deps, SCHEDULE, view, [moved]));
}

/** Whether the process that has started a run is silent. */
function isTakenOver({ watch, exclusive }: RunnerDeps, view: View<DefinedSchedule>): boolean {
  const unchangedMs = watch.unchangedFor(view);
  return exclusive || unchangedMs >= TAKE_OVER_MS;
}

/** Whether an earlier run of the schedule has not ended. */
async function runsAlready(
  { log }: RunnerDeps,
  { tickets }: DefinedSchedule,
  { run, jobId }: Ticket,
): Promise<boolean> {
  const earlier = tickets.filter((one) => one.status === 'started' && one.run < run && one.jobId !== jobId);
  const last = earlier.at(-1);
  if (last === undefined) return false;
  return (await load({ log }, JOB, last.jobId)).state.status !== 'completed';
}

/** From 0 to 1, the same for a run in every process. */
const fractionOf = (jobId: string): number => {
  const [a = 0, b = 0] = sha256(utf8(jobId));
  return (a * 256 + b) / 65_536;
};
