// What must hold of the runs of schedules: at each event, settle call and request, and when the world has come to rest.

import { temporalCalendar } from '#src/adapters/calendar/temporal.ts';
import { memoryQuota } from '#src/adapters/quota/memory.ts';
import { type EventOf, isScheduleEvent, type ScheduleEvent, STREAM } from '#src/domain/events.ts';
import type { Ledger } from '#src/domain/payment/ledger.ts';
import { RUN_TIMES } from '#src/domain/schedule/limits.ts';
import { absentSchedule, type DefinedSchedule, evolveSchedule } from '#src/domain/schedule/state.ts';
import type { EventLog, RecordedEvent } from '#src/ports/event-log.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import { UnchargedLimit } from '#src/usecases/execution/uncharged-limit.ts';
import { openPaymentRows } from '#src/usecases/payments/list-payments.ts';
import { KeySweep } from '#src/usecases/schedules/runner.ts';
import { Random } from '#test/support/world/random.ts';
import { EPOCH, Host } from './host.ts';
import type { Order } from './orders.ts';
import { Scheduler } from './scheduler.ts';
import type { Hit } from './target.ts';
import { simulatedVault, type VaultStore } from './vault.ts';
import type { Witness } from './witness.ts';

/** A run is taken over by another process when nothing was written for so long. */
const TAKE_OVER_MS = 45_000;
/** A clock was set, or the process frozen: its times of the last so many ms are not compared. */
const UNSETTLED_MS = 120_000;
/** Every client orders for the next two minutes. */
const FAR_MS = 300_000;
/** The reason of a skipped run that may have been charged. */
const MAYBE_CHARGED = 'unserved';

type Run = {
  readonly funded: EventOf<'RunFunded'>['data'];
  readonly scheduleId: string;
  readonly dueAt: string;
  /** By the process that won it. */
  readonly started: { readonly owner: string; readonly stored: number } | null;
  readonly skipped: string | null;
};

type Stored = { readonly event: ScheduleEvent; readonly created: string };

const jobOf = ({ type, data }: ScheduleEvent): string | null =>
  type === 'RunSkipped'
    ? data.plannedJobId
    : type === 'RunFunded' || type === 'RunStarted'
      ? data.jobId
      : null;

const startOf = ({ event, created }: Stored) => ({
  owner: event.type === 'RunStarted' ? event.data.owner : '',
  stored: Date.parse(created),
});

export class RunWitness {
  readonly #witness: Witness;
  readonly #vault: VaultStore;
  readonly #exclusive: boolean;
  readonly orders: readonly Order[];
  /** What strangers have presented for runs of others. */
  readonly foreign: PresentedPayment[] = [];

  constructor(
    witness: Witness,
    {
      vault,
      exclusive,
      orders,
    }: { readonly vault: VaultStore; readonly exclusive: boolean; readonly orders: readonly Order[] },
  ) {
    this.#witness = witness;
    this.#vault = vault;
    this.#exclusive = exclusive;
    this.orders = orders;
  }

  // ── what the log has now ──────────────────────────────────────────────────────────────────────────────

  schedule(scheduleId: string): DefinedSchedule | null {
    const events = this.#events(scheduleId).map(({ event }) => event);
    const found = events.reduce(evolveSchedule, absentSchedule);
    return found.status === 'absent' ? null : found;
  }

  #events(scheduleId: string): readonly Stored[] {
    return this.#witness.seen.log.read(STREAM.schedule(scheduleId)).flatMap((recorded) => {
      const event = this.#witness.decoded(recorded);
      return event !== null && isScheduleEvent(event) ? [{ event, created: recorded.created }] : [];
    });
  }

  get #ids(): readonly string[] {
    return this.#witness.streams('schedule-').map((stream) => stream.slice('schedule-'.length));
  }

  #run(scheduleId: string, jobId: string): Run | null {
    const events = this.#events(scheduleId).filter(({ event }) => jobOf(event) === jobId);
    const funded = events.flatMap(({ event }) => (event.type === 'RunFunded' ? [event.data] : [])).at(-1);
    if (funded === undefined) return null;
    const started = events.findLast(({ event }) => event.type === 'RunStarted');
    const skips = events.flatMap(({ event }) => (event.type === 'RunSkipped' ? [event.data] : []));
    const dueAt = skips.flatMap(({ movedTo }) => movedTo?.dueAt ?? []).at(-1) ?? funded.dueAt;
    const skipped = skips.find(({ movedTo }) => movedTo === null)?.reason ?? null;
    return { funded, scheduleId, dueAt, started: started ? startOf(started) : null, skipped };
  }

  #runOfJob(jobId: string): Run | null {
    for (const scheduleId of this.#ids) {
      const run = this.#run(scheduleId, jobId);
      if (run !== null) return run;
    }
    return null;
  }

  #hostOf(owner: unknown): Host | null {
    return this.#witness.hosts.find(({ name }) => String(owner).startsWith(`${name} `)) ?? null;
  }

  /** Whether its clock and its progress can be compared with those of the world. */
  #isSettled(host: Host): boolean {
    const from = host.scheduler.now - UNSETTLED_MS;
    return host.disturbedUntil < from && host.setAt < from;
  }

  // ── at each event ─────────────────────────────────────────────────────────────────────────────────────

  stored(event: RecordedEvent): void {
    if (event.type === 'RunStarted') this.#runStarted(event);
    else if (event.type === 'PaymentReserved' || event.type === 'JobStarted') this.#executed(event);
  }

  #runStarted({ stream, revision, data, created }: RecordedEvent): void {
    const before = this.#witness.seen.log.read(stream).filter((event) => event.revision < revision);
    if (before.some(({ type }) => type === 'ScheduleCancelled'))
      this.#witness.violated(
        'cancelled_not_started',
        `run ${data.run} of ${stream} starts when it is cancelled`,
      );
    if (before.some(({ type, data: { run } }) => type === 'RunStarted' && run === data.run))
      this.#witness.violated('one_winner', `run ${data.run} of ${stream} is started twice`);
    const [scheduleId, jobId] = [String(data.scheduleId), String(data.jobId)];
    const run = this.#run(scheduleId, jobId);
    const defined = this.schedule(scheduleId)?.defined;
    const host = this.#hostOf(data.owner);
    if (run === null || defined === undefined || host === null) {
      this.#witness.violated('one_winner', `run ${data.run} of ${stream} starts without a payment`);
      return;
    }
    const startedMs = Date.parse(String(data.startedAt));
    const isPrompt = this.#isSettled(host) && Date.parse(created) - (startedMs - host.wallOffset) < 5000;
    const lastMs = Date.parse(run.dueAt) + defined.catchUpSeconds * 1000 + RUN_TIMES.lookMs;
    if (isPrompt && startedMs > lastMs + 10_000)
      this.#witness.violated(
        'within_catch_up',
        `run ${data.run} of ${stream} starts ${startedMs - lastMs} ms late`,
      );
  }

  /** A process other than the one that has won the run executes it: only when that one has not for a while. */
  #executed({ type, stream, data, created }: RecordedEvent): void {
    const run = this.#runOfJob(String(data.jobId));
    if (run === null) {
      if (type === 'JobStarted' && data.schedule !== null)
        this.#witness.violated('run_once', `${stream} is a run of a schedule that no payment was bound to`);
      return;
    }
    const { started } = run;
    if (started === null)
      this.#witness.violated('run_started', `${type} in ${stream} before its run has started`);
    else if (
      !this.#exclusive &&
      started.owner !== data.owner &&
      Date.parse(created) - started.stored < TAKE_OVER_MS
    )
      this.#witness.violated(
        'one_winner',
        `${type} in ${stream} by ${data.owner}, and ${started.owner} has won it`,
      );
  }

  /** The facilitator gets a settle call for a run. */
  settleArrived(payment: PresentedPayment, host: Host): void {
    const { log, scheduler } = this.#witness.seen;
    const events = log.read(STREAM.payment(payment.hash));
    const deferred = events.findLast(({ type }) => type === 'PaymentDeferred');
    const claimed = events.findLast(({ type }) => type === 'PaymentReserved');
    if (deferred === undefined) return;
    const run = this.#run(String(deferred.data.scheduleId), String(claimed?.data.jobId));
    if (run?.started == null) {
      this.#witness.violated('run_started', `a settle call of ${host.name} before its run has started`);
      return;
    }
    const schedule = log.read(STREAM.schedule(run.scheduleId));
    const cancelled = schedule.find(({ type }) => type === 'ScheduleCancelled');
    if (cancelled !== undefined && claimed !== undefined && cancelled.position < claimed.position)
      this.#witness.violated('cancelled_not_charged', `a settle call of ${host.name} after the cancellation`);
    const dueMs = Date.parse(run.dueAt);
    const earlyMs = dueMs - (this.#exclusive ? host.clock.now() : EPOCH + scheduler.now);
    const toleranceMs = this.#exclusive ? 0 : RUN_TIMES.clockToleranceMs;
    if (earlyMs > toleranceMs && this.#isSettled(host))
      this.#witness.violated('not_before_due', `a settle call ${earlyMs} ms before its run is due`);
  }

  hit({ jobId, path }: Hit): void {
    if (!path.startsWith('/run/')) return;
    const run = this.#runOfJob(jobId);
    if (run?.started == null)
      this.#witness.violated('run_once', `${path} gets a request of no run: ${jobId}`);
    const { hits } = this.#witness;
    const others = hits.filter((other) => other.path === path && other.jobId !== jobId);
    for (const other of others) {
      const its = this.#runOfJob(other.jobId);
      if (run !== null && its?.scheduleId === run.scheduleId && its.dueAt === run.dueAt)
        this.#witness.violated('run_once', `${path}: the run of ${run.dueAt} is sent by two jobs`);
    }
  }

  // ── over a snapshot ───────────────────────────────────────────────────────────────────────────────────

  /**
   * Runs that were sent, are paid on the chain, and may still start at `now` (virtual ms): their jobs, and the numbers of
   * events that a log had after their purchase and before their start.
   */
  sentRuns(now: number): readonly { readonly jobId: string; readonly from: number; readonly to: number }[] {
    const { log, chain } = this.#witness.seen;
    const starts = log.events.filter(({ type }) => type === 'RunStarted');
    return starts.flatMap(({ data, position }) => {
      const [scheduleId, jobId] = [String(data.scheduleId), String(data.jobId)];
      const run = this.#run(scheduleId, jobId);
      const catchUpSeconds = this.schedule(scheduleId)?.defined.catchUpSeconds ?? 0;
      const isSent = this.#witness.hits.some((hit) => hit.jobId === jobId);
      if (run?.funded.paymentStream == null || !isSent) return [];
      const payment = this.#witness.payment(run.funded.paymentStream);
      const isPaid = payment.status !== 'absent' && chain.endOf(payment.reserved)?.kind === 'use';
      const mayStart = Date.parse(run.dueAt) + catchUpSeconds * 1000 > EPOCH + now;
      const funded = log.events.find(({ type, data }) => type === 'RunFunded' && data.jobId === jobId);
      if (!isPaid || !mayStart || funded === undefined) return [];
      return [{ jobId, from: Number(funded.position), to: Number(position) - 1 }];
    });
  }

  /**
   * Whether one of the first `end` events of the log reserves a payment whose job starts behind them: over such a snapshot
   * nothing, not even the chain, shows that the call was made.
   */
  isUnderWay(end: number): boolean {
    const { events } = this.#witness.seen.log;
    const positions = (type: string) =>
      new Map(
        events
          .filter((event) => event.type === type)
          .map((event) => [event.data.jobId, Number(event.position)]),
      );
    const reserved = positions('PaymentReserved');
    return [...positions('JobStarted')].some(
      ([jobId, started]) => (reserved.get(jobId) ?? Number.POSITIVE_INFINITY) <= end && started > end,
    );
  }

  // ── at rest ───────────────────────────────────────────────────────────────────────────────────────────

  /** A run that is not over, or a call without an answer; null: none. */
  busyWith(): string | null {
    for (const { isResolved, relay } of this.orders.flatMap(({ calls }) => calls))
      if (!isResolved && this.#witness.hosts.some(({ name, alive }) => alive && name === relay))
        return `${relay} owes an answer of a schedule`;
    return this.openRun(this.#ids);
  }

  /** A run that is not over; null: none. One that a process sold whose clock was far ahead is not waited for. */
  openRun(scheduleIds: Iterable<string>): string | null {
    const farMs = EPOCH + this.#witness.seen.scheduler.now + FAR_MS;
    for (const scheduleId of scheduleIds)
      for (const { run, jobId, status, dueAt } of this.schedule(scheduleId)?.tickets ?? [])
        if (Date.parse(dueAt) < farMs && this.#isOpen(status, jobId))
          return `run ${run} of schedule ${scheduleId} is not over`;
    return null;
  }

  #isOpen(status: 'funded' | 'started', jobId: string): boolean {
    return status === 'funded' || this.#witness.job(jobId).status !== 'completed';
  }

  /** When everything has ended. */
  async check(ledger: Ledger | null, log: EventLog): Promise<void> {
    if ((this.#witness.seen.trace.counts.get('a process ended or a call failed') ?? 0) > 0)
      await this.#sweep(log);
    const open = this.openRun(this.#ids);
    if (open !== null) this.#witness.violated('runs_ended', open);
    for (const { hash } of this.foreign)
      if (this.#witness.seen.log.read(STREAM.payment(hash)).length > 0)
        this.#witness.violated('not_of_strangers', `the payment ${hash} of a stranger is stored`);
    const paidJobs = new Map<string, string>();
    for (const scheduleId of this.#ids) {
      for (const { event } of this.#events(scheduleId)) {
        if (event.type !== 'RunFunded') continue;
        const run = this.#run(scheduleId, event.data.jobId);
        if (run !== null) this.#checkRun(run, ledger, paidJobs);
      }
      const schedule = this.schedule(scheduleId);
      const isOver =
        (schedule?.status === 'cancelled' || schedule?.next === null) &&
        schedule.tickets.every(({ status, jobId }) => !this.#isOpen(status, jobId));
      if (schedule !== null && isOver && this.#vault.has(schedule.defined.sealed))
        this.#witness.violated('keys_deleted', `the request of ${scheduleId} can be read when it is over`);
    }
  }

  /** What a crash or an outage left is swept within twenty minutes. */
  async #sweep(log: EventLog): Promise<void> {
    const host = new Host('sweep', new Scheduler(new Random(1)), new Random(2), this.#witness.seen.trace);
    const vault = simulatedVault(this.#vault, host, { unavailable: 0, lostAnswer: 0 }, true);
    const { entropy, logger, scheduler } = host;
    let isDone = false;
    let at = 0;
    const clock = { ...host.clock, monotonic: () => at };
    const uncharged = new UnchargedLimit({ log, clock, quota: memoryQuota() });
    const calendar = temporalCalendar();
    const sweep = new KeySweep({ log, vault, clock, entropy, logger, calendar, uncharged });
    void (async () => {
      for (; at < 2_000_000; at += 700_000) {
        sweep.sweepIfDue((cause) => this.#witness.violated('keys_deleted', `the sweep fails: ${cause}`));
        await sweep.settled();
      }
      isDone = true;
    })();
    await scheduler.run(Number.POSITIVE_INFINITY, () => isDone);
  }

  #checkRun(
    { funded, skipped, scheduleId }: Run,
    ledger: Ledger | null,
    paidJobs: Map<string, string>,
  ): void {
    const witness = this.#witness;
    const { chain, trace } = witness.seen;
    const { run: n, jobId, paymentStream, sealed } = funded;
    const name = `run ${n} of ${scheduleId}`;
    const job = witness.job(jobId);
    const isSent = witness.hits.some((hit) => hit.jobId === jobId);
    trace.reached(`run ${skipped === null ? job.status : `skipped: ${skipped}`}`);
    // Its name may be unknown for a time, and it is always allowed.
    if (skipped === 'target_refused') witness.violated('skip_true', `${name} was skipped as ${skipped}`);
    if (skipped !== null && isSent) witness.violated('skipped_not_sent', `${name} (${skipped}) was sent`);
    const isOver = skipped !== null || job.status === 'completed';
    if (isOver && sealed !== null && this.#vault.has(sealed))
      witness.violated('keys_deleted', `the payment of ${name} can be read when it is over`);
    if (paymentStream === null) return;
    const payment = witness.payment(paymentStream);
    if (isOver && payment.status === 'absent')
      witness.violated('ticket_released', `${name} is over, and its payment is still pledged to it`);
    if (payment.status === 'absent' || payment.reserved.jobId !== jobId) return;
    const isLie = ['refused_and_moved', 'settled_without_transfer'].includes(
      witness.settleKinds.get(paymentStream) ?? '',
    );
    const wasReorganised = (trace.counts.get('reorganisation with transfers') ?? 0) > 0;
    const isPaid = chain.endOf(payment.reserved)?.kind === 'use';
    const mayBePaid = skipped === null || skipped === MAYBE_CHARGED || isLie || wasReorganised;
    const isReturned = payment.status === 'refunding' || payment.status === 'refunded';
    if (isPaid && !mayBePaid && !isReturned)
      witness.violated('skip_uncharged', `${name} was skipped as ${skipped}, and its money came`);
    if (isSent) {
      const other = paidJobs.get(paymentStream);
      if (other !== undefined)
        witness.violated('payment_once', `${paymentStream} bought ${jobId} and ${other}`);
      paidJobs.set(paymentStream, jobId);
    }
    if (!isPaid || isReturned || ledger === null || job.status !== 'absent') return;
    const listed = openPaymentRows(ledger, Number.MAX_SAFE_INTEGER).find(({ id }) => id === paymentStream);
    if (listed === undefined || !['unserved', 'refundable', 'refunding'].includes(listed.state))
      witness.violated(
        'charged_for_run',
        `${name} is charged, has no job and is ${listed?.state} in the list`,
      );
  }
}
