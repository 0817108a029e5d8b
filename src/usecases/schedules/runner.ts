// Starts runs of schedules when they are due. A run is an ordinary call whose key is its schedule and its number: any number
// of processes may execute it at once, and one job is what becomes of it. Candidates come from rows, the stream decides.
import { catchUpEnd, moveRun, passUnfunded, startRun } from '#src/domain/schedule/commands.ts';
import { RUN_TIMES } from '#src/domain/schedule/limits.ts';
import { type DefinedSchedule, type Ticket, UNFUNDED } from '#src/domain/schedule/state.ts';
import { isoNow } from '#src/lib/iso.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import { isOutage } from '#src/ports/outage.ts';
import type { Release } from '#src/usecases/execution/process-limits.ts';
import { JOB, load, SCHEDULE, tryAppend, type View } from '#src/usecases/process/stream.ts';
import type { StreamWatch } from '#src/usecases/process/watch.ts';
import { type Look, Worker } from '#src/usecases/process/worker.ts';
import { definedView, type EndDeps, endRun, forgetRequest, forgetRun } from './end-run.ts';
import { type ScheduleDeps, timeOf } from './quote.ts';
import { type RunPlaces, type RunPlacesDeps, runPlaces } from './run-places.ts';
import { notAfter, RunTries } from './try-run.ts';

export type RunnerDeps = ScheduleDeps &
  RunPlacesDeps & {
    /**
     * Schedules with a run that is due by this time (Unix ms) and not known as over; `few`: only those whose turn is next. Only
     * candidates: the streams decide.
     */
    readonly candidates: (untilMs: number, few: boolean) => Promise<readonly string[]>;
    /** Aborts when the process is asked to stop: no run is started any more. */
    readonly stopping: AbortSignalLike;
  };

const LOOK_MS = 1000;
/** Between two looks while no run may start: as many are in progress as there may be, or calls are in flight. */
const FULL_MS = 50;
/** Schedules that are looked at in parallel, so that their starts are committed together. */
const LOOKS_AT_ONCE = 32;
/** A run that another process has started is executed here too when nothing was written for so long. */
const TAKE_OVER_MS = 45_000;

/** Throws `VaultUnavailable`. */
async function isReady({ recordIsWhole, sharedClock, logger }: RunnerDeps): Promise<boolean> {
  if (await recordIsWhole()) return sharedClock.agrees();
  logger.condition('schedules', 'runner_held');
  return false;
}

export class ScheduleRunner {
  readonly #deps: RunnerDeps;
  readonly #worker: Worker<string>;
  readonly #keys: KeySweep;
  readonly #runs: RunTries;
  readonly #places: RunPlaces;
  /** When every candidate was looked at, monotonic ms. */
  #wholeAt = Number.NEGATIVE_INFINITY;
  /** Whether this pass looks at every candidate, and not only for a run to start. */
  #isWhole = true;

  constructor(deps: RunnerDeps) {
    this.#deps = deps;
    this.#keys = new KeySweep(deps);
    this.#runs = new RunTries(deps);
    this.#places = runPlaces(deps);
    const message = 'a schedule could not be looked at; this is repeated';
    this.#worker = new Worker<string>(deps, {
      pauseMs: () => (this.#places.isFull() ? FULL_MS : LOOK_MS),
      ready: () => isReady(deps),
      candidates: () => this.#candidates(),
      keyOf: (scheduleId) => scheduleId,
      atOnce: LOOKS_AT_ONCE,
      look: (scheduleId, watch) => this.#look(scheduleId, watch),
      after: () => this.#keys.sweepIfDue((cause) => isOutage(cause) || deps.logger.bug(message, { cause })),
      failed: { message, fields: (scheduleId) => ({ scheduleId }) },
    });
  }

  /** Looks once a second until `stopping` aborts; resolves when the runs in progress have ended. */
  async run(): Promise<void> {
    await this.#worker.run();
    await this.settled();
  }

  /** One look at the schedules that are due. Never throws. */
  async pass(): Promise<void> {
    await this.#worker.pass();
  }

  /** Resolves when no run is in progress here. */
  async settled(): Promise<void> {
    await Promise.all([this.#runs.settled(), this.#keys.settled()]);
  }

  #candidates(): Promise<readonly string[]> {
    const { clock, candidates } = this.#deps;
    const now = clock.monotonic();
    this.#isWhole = now - this.#wholeAt >= LOOK_MS;
    if (this.#isWhole) this.#wholeAt = now;
    return candidates(clock.now(), !this.#isWhole && this.#places.isPaced());
  }

  async #look(scheduleId: string, watch: Pick<StreamWatch, 'unchangedFor'>): Promise<Look> {
    if (!this.#isWhole && this.#places.isFull()) return 'later';
    let view = definedView(await load(this.#deps, SCHEDULE, scheduleId));
    if (view === null) return 'over';
    const passed = passUnfunded(view.state, timeOf(this.#deps));
    view = definedView(await tryAppend(this.#deps, SCHEDULE, view, passed));
    const tickets = [...(view?.state.tickets ?? [])].sort((a, b) => (a.dueAt < b.dueAt ? -1 : 1));
    for (const ticket of tickets) {
      if (view === null || this.#deps.stopping.aborted) break;
      const isDue = Date.parse(ticket.dueAt) <= this.#deps.clock.now();
      if (this.#runs.isInProgress(ticket.jobId) || (!isDue && view.state.status !== 'cancelled')) continue;
      view = await (ticket.status === 'funded'
        ? this.#lookAtFunded(view, ticket)
        : this.#lookAtStarted(view, ticket, watch));
    }
    return 'later';
  }

  /** Returns the schedule after it; null: another process wrote to it first. */
  async #lookAtFunded(view: View<DefinedSchedule>, ticket: Ticket): Promise<View<DefinedSchedule> | null> {
    const { state } = view;
    if (state.status === 'cancelled') return endRun(this.#deps, view, ticket, 'cancelled');
    const now = this.#deps.clock.now();
    if (now > catchUpEnd(state.defined, ticket) + RUN_TIMES.lookMs) return missRun(this.#deps, view, ticket);
    if (ticket.validBefore !== null && ticket.validBefore <= now / 1000)
      return endRun(this.#deps, view, ticket, UNFUNDED);
    if (await runsAlready(this.#deps, state, ticket)) return endRun(this.#deps, view, ticket, 'overlap');
    const place = this.#places.take(state, ticket);
    if (place === null) return view;
    const started = startRun(state, ticket, this.#deps.owner, isoNow(this.#deps));
    const appending = started && tryAppend(this.#deps, SCHEDULE, view, [started]).catch(orGiveBack(place));
    const after = definedView(await appending);
    if (after !== null) this.#runs.begin(after, ticket, place);
    else place();
    return started === null ? view : after;
  }

  async #lookAtStarted(
    view: View<DefinedSchedule>,
    ticket: Ticket,
    watch: Pick<StreamWatch, 'unchangedFor'>,
  ): Promise<View<DefinedSchedule> | null> {
    const { jobId } = ticket;
    const { clock, exclusive } = this.#deps;
    const job = await load(this.#deps, JOB, jobId);
    if (job.state.status === 'running') return view;
    if (job.state.status === 'completed') {
      await forgetRun(this.#deps, view, ticket);
      this.#runs.forget(jobId);
      return view;
    }
    if (view.state.status === 'cancelled') {
      const after = await endRun(this.#deps, view, ticket, 'cancelled');
      if (after !== view) return after;
    }
    const tried = this.#runs.tried(jobId);
    if (clock.now() > notAfter(view.state, ticket))
      return endRun(this.#deps, view, ticket, tried?.reason ?? 'missed');
    const isMine =
      tried === null
        ? exclusive || watch.unchangedFor(view) >= TAKE_OVER_MS
        : clock.monotonic() >= tried.again;
    const place = isMine ? this.#places.take(view.state, ticket) : null;
    if (place !== null) this.#runs.begin(view, ticket, place);
    return view;
  }
}

/** The run does not start: the event log is unavailable. */
const orGiveBack =
  (place: Release) =>
  (cause: unknown): never => {
    place();
    throw cause;
  };

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

const SWEEP_MS = 600_000;

/**
 * Deletes the keys that a crash has left behind: of runs that have ended, of purchases that were not completed, and of
 * cancellations.
 */
export class KeySweep {
  readonly #deps: EndDeps;
  /** Keys that no run had at the last look: a purchase may be under way, whose run is recorded after its key. */
  #unused: ReadonlySet<string> = new Set();

  /** Monotonic ms. */
  #sweptAt = Number.NEGATIVE_INFINITY;
  #sweeping: Promise<void> = Promise.resolve();

  constructor(deps: EndDeps) {
    this.#deps = deps;
  }

  /** Begins a look at the schedules that have a key, at most every 10 minutes: longer than a purchase takes. */
  sweepIfDue(failed: (cause: unknown) => unknown): void {
    const now = this.#deps.clock.monotonic();
    if (now - this.#sweptAt < SWEEP_MS) return;
    this.#sweptAt = now;
    this.#sweeping = this.#sweep().catch((cause: unknown) => void failed(cause));
  }

  settled(): Promise<void> {
    return this.#sweeping;
  }

  async #sweep(): Promise<void> {
    const { log, vault } = this.#deps;
    const names = new Set(await vault.names());
    const used = new Set<string>();
    for (const name of names) {
      const view = name.startsWith('sch_') ? definedView(await load({ log }, SCHEDULE, name)) : null;
      if (view === null) continue;
      used.add(name);
      for (const { jobId } of view.state.tickets) used.add(jobId);
      await this.#sweepSchedule(view, names);
    }
    const unused = [...names].filter((name) => !used.has(name));
    await vault.remove(unused.filter((name) => this.#unused.has(name)));
    this.#unused = new Set(unused);
  }

  async #sweepSchedule(view: View<DefinedSchedule>, names: ReadonlySet<string>): Promise<void> {
    let now: View<DefinedSchedule> | null = view;
    for (const ticket of view.state.tickets) {
      if (now === null || !names.has(ticket.jobId)) continue;
      if (ticket.status === 'started') {
        const job = await load(this.#deps, JOB, ticket.jobId);
        if (job.state.status === 'completed') await this.#deps.vault.remove([ticket.jobId]);
      } else if (view.state.status === 'cancelled') now = await endRun(this.#deps, now, ticket, 'cancelled');
    }
    if (now !== null) await forgetRequest(this.#deps, now);
  }
}
