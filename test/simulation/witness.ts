// What the world itself has seen, apart from what the service records: requests at the targets, settle calls, answers. Checks
// at once what must hold at that moment.
import { decodeEvent } from '#src/domain/event-codec.ts';
import { isJobEvent, isPaymentEvent, STREAM } from '#src/domain/events.ts';
import { absentJob, evolveJob, type Job } from '#src/domain/job/state.ts';
import { TIMES } from '#src/domain/limits.ts';
import { absentPayment, evolvePayment, type Payment } from '#src/domain/payment/state.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import type { QuotaRule } from '#src/ports/quota.ts';
import type { MemoryChain } from '#test/support/chain/memory-chain.ts';
import type { SettleKind } from '#test/support/chain/memory-payments.ts';
import { type Answer, type Intent, type Made, textOf } from './buyers.ts';
import { EPOCH, type Host } from './host.ts';
import type { LogStore } from './log.ts';
import { PAYEE } from './payments.ts';
import type { RunWitness } from './run-witness.ts';
import type { Scheduler } from './scheduler.ts';
import type { Hit } from './target.ts';
import type { Trace } from './trace.ts';

export type Violation = { readonly invariant: string; readonly detail: string };

/** `ended`: how many reservations of the call's payment had ended without a charge when it was made. */
type Expected = { readonly jobId: string | null; readonly accepted: boolean; readonly ended: number };

type Seen = {
  readonly log: LogStore;
  readonly chain: MemoryChain;
  readonly scheduler: Scheduler;
  readonly trace: Trace;
  readonly isPaid: boolean;
  /** The chain's node keeps the state of all blocks. */
  readonly keepsState: boolean;
};

/** A repeat may have to wait. */
const LIMITED = ['too_many_in_flight', 'rate_limited'];
/** What the clocks of processes differ by. */
const CLOCKS_MS = 2 * 3_600_000;

/** The clock of a process that recorded a charge may be ahead; one that is far ahead is not waited for. */
const chargeTime = (stored: number, settled: number): number =>
  settled - stored > FAR_AHEAD_MS ? stored : Math.max(stored, settled);
const FAR_AHEAD_MS = 600_000;

export class Witness {
  readonly violations: Violation[] = [];
  readonly hits: Hit[] = [];
  readonly calls: Made[] = [];
  readonly hosts: Host[] = [];
  intents: readonly Intent[] = [];
  /** null: this world has no schedules. */
  runs: RunWitness | null = null;
  /** Virtual ms at which the log was replaced by a backup that only its witnesses notice; null: it was not. */
  unnoticedSince: number | null = null;
  /** What the world makes of an event. */
  onStored: (event: RecordedEvent) => void = () => undefined;
  /** Settle calls that arrived, by the payment's stream. */
  readonly settles = new Map<string, number>();
  readonly settleKinds = new Map<string, SettleKind>();
  readonly #begun = new Map<string, number>();
  /** Units of targets' quotas that were taken, by process, payer and target. */
  readonly #units = new Map<string, number>();
  readonly #decoded = new WeakMap<RecordedEvent, ReturnType<typeof decodeEvent>>();
  /** By call: the completed job that a repeat must get; calls whose payment was accepted before are `accepted`. */
  readonly #expected = new Map<Made, Expected>();
  readonly seen: Seen;

  constructor(seen: Seen) {
    this.seen = seen;
    seen.log.onStored = (events) => {
      for (const event of events) {
        if (event.type === 'JobCompleted') this.#closed(event);
        if (event.type === 'ChainReconciled') this.#reconciled(event);
        this.runs?.stored(event);
        this.onStored(event);
      }
    };
  }

  violated(invariant: string, detail: string): void {
    this.seen.trace.note(`VIOLATED ${invariant}: ${detail}`);
    this.violations.push({ invariant, detail });
  }

  // ── what the log has now ──────────────────────────────────────────────────────────────────────────────

  job(jobId: string): Job {
    return this.#fold(STREAM.job(jobId), absentJob, (job, event) =>
      isJobEvent(event) ? evolveJob(job, event) : job,
    );
  }

  payment(stream: string): Payment {
    return this.#fold(stream, absentPayment, (payment, event) =>
      isPaymentEvent(event) ? evolvePayment(payment, event) : payment,
    );
  }

  #fold<S>(
    stream: string,
    first: S,
    evolve: (state: S, event: NonNullable<ReturnType<typeof decodeEvent>>) => S,
  ): S {
    return this.seen.log.read(stream).reduce((state, recorded) => {
      const event = this.decoded(recorded);
      return event === null ? state : evolve(state, event);
    }, first);
  }

  /** Each stored event is decoded once. */
  decoded(recorded: RecordedEvent): ReturnType<typeof decodeEvent> {
    const known = this.#decoded.get(recorded);
    if (known !== undefined) return known;
    const event = decodeEvent(recorded);
    this.#decoded.set(recorded, event);
    return event;
  }

  /** Everything that was signed to pay us. */
  payments(): readonly PresentedPayment[] {
    return [...this.intents, ...(this.runs?.orders ?? [])].flatMap(({ payments }) => payments);
  }

  streams(prefix: string): readonly string[] {
    return [...this.seen.log.streams.keys()].filter((stream) => stream.startsWith(prefix));
  }

  // ── what recovery may close ───────────────────────────────────────────────────────────────────────────

  /** Whatever a scan leaves out: the payee's balance shows it, while the node keeps the state. */
  #reconciled({ data }: RecordedEvent): void {
    const { chain, keepsState } = this.seen;
    const [from, to] = [Number(data.fromBlock), Number(data.toBlock)];
    if (!keepsState || chain.block(to)?.hash !== data.blockHash) return;
    const received = chain.received(to, PAYEE) - chain.received(from - 1, PAYEE);
    if (BigInt(String(data.received)) !== received)
      this.violated('round_is_whole', `${data.received} of ${received} came in the blocks ${from} to ${to}`);
  }

  /** Only a job whose owner has ended, or has not appended for its lease and the grace beyond it. */
  #closed({ stream, data, created }: RecordedEvent): void {
    if (data.closedBy !== 'recovery') return;
    const events = this.seen.log.read(stream);
    const started = events.find(({ type }) => type === 'JobStarted');
    const before = events.findLast(
      ({ type, data: { willRetry } }) => type === 'JobStarted' || willRetry === true,
    );
    if (started === undefined || before === undefined) return;
    const owner = this.hosts.find(({ name }) => String(started.data.owner).startsWith(`${name} `));
    if (owner === undefined || !owner.alive) return;
    const waited = Date.parse(created) - Date.parse(before.created);
    const least = Number(started.data.leaseMs) + TIMES.recoveryGraceMs;
    if (waited < least)
      this.violated(
        'live_job_closed',
        `${stream} is closed ${waited} ms after its last event, its lease is ${least} ms`,
      );
    // It was neither frozen nor cut off, nor was its clock set to before its keys are valid: it would have ended it.
    const since = this.seen.scheduler.now - waited;
    if (waited >= least && owner.disturbedUntil < since && !owner.wasSetBefore(this.#firstKeyAt(), since))
      this.violated('live_job_closed', `${stream} is closed by recovery, and ${owner.name} lives`);
  }

  /** From when the first key for receipts is valid, Unix ms. */
  #firstKeyAt(): number {
    const keys = this.seen.log.events.filter(
      ({ type, data }) => type === 'SigningKeyActivated' && data.purpose === 'receipt',
    );
    return Math.min(...keys.map(({ data }) => Date.parse(String(data.activatedAt))));
  }

  // ── at the facilitator ────────────────────────────────────────────────────────────────────────────────

  settleArrived(payment: PresentedPayment, host: Host): void {
    const stream = STREAM.payment(payment.hash);
    const count = (this.settles.get(stream) ?? 0) + 1;
    this.settles.set(stream, count);
    const events = this.seen.log.read(stream);
    const claims = events.filter(({ type }) => type === 'PaymentReserved' || type === 'SettlementRetried');
    if (claims.length < count)
      this.violated(
        'settle_claimed',
        `${count} settle calls for ${claims.length} claims of payment ${payment.nonce.slice(2, 8)}`,
      );
    if (!claims.some(({ data }) => String(data.owner).startsWith(`${host.name} `)))
      this.violated('settle_claimed', `${host.name} settles a payment that it has not claimed`);
    this.runs?.settleArrived(payment, host);
    const jobId = String(claims.at(-1)?.data.jobId ?? '');
    const intent = this.intents.find(({ payments }) => payments.some(({ hash }) => hash === payment.hash));
    if (intent === undefined || intent.key === null) return;
    const held = this.streams('claim-').some((claim) =>
      this.seen.log
        .read(claim)
        .some(({ type, data }) => type === 'IdempotencyKeyClaimed' && data.jobId === jobId),
    );
    this.#mayBeCharged(intent, payment);
    if (!held)
      this.violated('settle_claimed', `a settle call before the idempotency key of job ${jobId} is claimed`);
  }

  /** Of the earlier payments of the same key, none is paid or may still be, unless it was refunded. */
  #mayBeCharged(intent: Intent, payment: PresentedPayment): void {
    const { chain, trace } = this.seen;
    if ((trace.counts.get('reorganisation with transfers') ?? 0) > 0) return;
    for (const other of intent.payments) {
      if (other.hash === payment.hash) continue;
      const isAlive = chain.isPaidOrWaiting(other);
      const state = this.payment(STREAM.payment(other.hash));
      const { status } = state;
      const isOld = 'reserved' in state && this.#endedLongAgo(state.reserved.jobId);
      if (isAlive && status !== 'refunded' && !isOld)
        this.violated(
          'charged_once',
          `client ${intent.id} is charged again while its payment ${other.nonce.slice(2, 8)} is ${status}`,
        );
    }
  }

  /** So that its key may be free again. */
  #endedLongAgo(jobId: string): boolean {
    const end = this.seen.log.read(STREAM.job(jobId)).find(({ type }) => type === 'JobCompleted');
    const since = end === undefined ? 0 : EPOCH + this.seen.scheduler.now - Date.parse(end.created);
    return since > TIMES.idempotencyRetentionMs - CLOCKS_MS;
  }

  settleCount(): number {
    return [...this.settles.values()].reduce((sum, count) => sum + count, 0);
  }

  settled(payment: PresentedPayment, kind: SettleKind): void {
    this.settleKinds.set(STREAM.payment(payment.hash), kind);
  }

  // ── at the targets ────────────────────────────────────────────────────────────────────────────────────

  hit(hit: Hit): void {
    const { trace, log } = this.seen;
    trace.note(`the target ${hit.path} gets the request of ${hit.jobId.slice(0, 12)} from ${hit.host}`);
    this.hits.push(hit);
    this.runs?.hit(hit);
    const events = log.read(STREAM.job(hit.jobId));
    if (!events.some(({ type }) => type === 'JobStarted'))
      this.violated('start_before_send', `job ${hit.jobId} is sent before its start is stored`);
    const announced =
      1 + events.filter(({ type, data }) => type === 'AttemptMade' && data.willRetry === true).length;
    const count = this.hits.filter(({ jobId }) => jobId === hit.jobId).length;
    if (count > announced)
      this.violated('sent_once', `job ${hit.jobId}: ${count} requests for ${announced} announced attempts`);
    const completed = events.find(({ type }) => type === 'JobCompleted');
    const now = this.seen.scheduler.now;
    const closedFor = completed === undefined ? 0 : EPOCH + now - Date.parse(completed.created);
    const owner = this.hosts.find(({ name }) => name === hit.host);
    if (closedFor > 5000 && owner !== undefined && owner.frozenUntil < now - 5000)
      this.violated('no_call_after_close', `job ${hit.jobId} is sent ${closedFor} ms after it was closed`);
    const started = events.find(({ type }) => type === 'JobStarted');
    const last = events.findLast(({ type, data }) => type === 'JobStarted' || data.willRetry === true);
    const since = last === undefined ? 0 : EPOCH + now - Date.parse(last.created);
    const isLate = started !== undefined && since > Number(started.data.leaseMs) + 2000;
    if (isLate && owner !== undefined && owner.frozenUntil < now - 5000)
      this.violated(
        'within_lease',
        `job ${hit.jobId} is sent ${since} ms after its start, its lease is ${started.data.leaseMs} ms`,
      );
    const stream = started?.data.paymentStream;
    if (typeof stream === 'string' && this.#begun.has(stream))
      this.violated('refund_or_call', `job ${hit.jobId} is sent although its refund has begun`);
    if (this.seen.isPaid && started !== undefined && started.data.payment === null)
      this.violated('paid_before_send', `job ${hit.jobId} is sent without a payment`);
  }

  // ── at the clients ────────────────────────────────────────────────────────────────────────────────────

  made(made: Made): void {
    this.calls.push(made);
    const [jobId, accepted, ended] = [this.#completedFor(made), this.#isAccepted(made), this.#ended(made)];
    this.#expected.set(made, { jobId, accepted, ended });
  }

  /** The job that this payment has bought, or that this key names. */
  #completedFor({ intent, payment, isOther }: Made): string | null {
    if (isOther) return null;
    const { scheduler, log } = this.seen;
    const state = payment === null ? null : this.payment(STREAM.payment(payment.hash));
    // A charge that was found missing and taken back bought nothing: the payment is as one that was never made.
    const isBound = state !== null && state.status !== 'absent' && state.status !== 'rejected';
    const byPayment = isBound ? state.reserved.jobId : null;
    if (byPayment !== null && this.job(byPayment).status === 'completed') return byPayment;
    // A payment that was accepted for a job of its own decides before the key.
    if (intent.key === null || byPayment !== null) return null;
    const ids = intent.calls.flatMap(({ answer }) =>
      answer?.kind === 'executed' ? [answer.execution.job.id] : [],
    );
    return (
      ids.find((jobId) => {
        const end = log.read(STREAM.job(jobId)).find(({ type }) => type === 'JobCompleted');
        return (
          end !== undefined &&
          EPOCH + scheduler.now - Date.parse(end.created) < TIMES.idempotencyRetentionMs - CLOCKS_MS
        );
      }) ?? null
    );
  }

  #isAccepted({ payment }: Made): boolean {
    if (payment === null) return false;
    return !['absent', 'rejected', 'released'].includes(this.payment(STREAM.payment(payment.hash)).status);
  }

  #ended({ payment }: Made): number {
    if (payment === null) return 0;
    const events = this.seen.log.read(STREAM.payment(payment.hash));
    return events.filter(({ type }) => type === 'PaymentRejected' || type === 'PaymentReleased').length;
  }

  /** A unit of a target's quota is for a call that is new; one whose payment was rejected or released meanwhile is new again. */
  quotaTaken({ name: rule }: QuotaRule, key: string, host: Host): void {
    if (rule !== 'target-per-payer') return;
    const isIts = ({ payer }: { readonly payer: string }) => key.startsWith(`${payer} `);
    // A run of a schedule has no call.
    if (this.runs?.orders.some(isIts)) return;
    const isKnown = (made: Made) => {
      const expected = this.#expected.get(made);
      return expected?.accepted === true && expected.ended === this.#ended(made);
    };
    // Also one that was answered before may continue.
    const calls = this.calls.filter(({ relay, intent }) => relay === host.name && isIts(intent));
    const isNew = calls.filter((made) => !isKnown(made)).length;
    const name = `${host.name} ${key}`;
    const taken = (this.#units.get(name) ?? 0) + 1;
    this.#units.set(name, taken);
    const waiting = calls.filter(({ isResolved }) => !isResolved);
    if (taken > isNew || (waiting.length > 0 && waiting.every(isKnown)))
      this.violated('quota_once', `${host.name} takes ${taken} units for ${isNew} new calls of ${key}`);
  }

  /** The process has answered. */
  answered(made: Made, answer: Answer): void {
    if (answer.kind === 'fault' && answer.code.startsWith('internal'))
      this.violated('no_defect', answer.code);
    if (answer.kind === 'refused' && answer.code === 'payment_required' && made.payment !== null) {
      this.seen.chain.mine();
      if (this.seen.chain.endOf(made.payment)?.kind === 'use' && !this.#isHeldBack(made))
        this.violated(
          'never_402_when_paid',
          `client ${made.intent.id} is refused although its money has come`,
        );
    }
    const expected = this.#expected.get(made)?.jobId ?? null;
    const isExecuted = answer.kind === 'executed';
    if (made.isOther && isExecuted)
      this.violated(
        'other_request',
        `client ${made.intent.id} gets a result for a request that it did not pay for`,
      );
    const isLimited = answer.kind === 'refused' && LIMITED.includes(answer.code);
    if (
      expected !== null &&
      answer.kind !== 'fault' &&
      !isLimited &&
      !(isExecuted && answer.execution.job.id === expected)
    )
      this.violated(
        'replayed',
        `client ${made.intent.id} gets ${isExecuted ? answer.execution.job.id : textOf(answer)} instead of the replay of ${expected}`,
      );
    if (answer.kind === 'executed') {
      const { job, receipt } = answer.execution;
      const stored = this.seen.log
        .read(STREAM.job(job.id))
        .some(({ type, data }) => type === 'ReceiptSigned' && data.jws === receipt.jws);
      if (!stored) this.violated('answer_durable', `the receipt of ${job.id} is answered and not stored`);
      const earlier = made.intent.calls.find(
        ({ answer: before, payment }) =>
          before?.kind === 'executed' &&
          payment === made.payment &&
          before.execution.receipt.jws !== receipt.jws &&
          !this.#isOfRefunded(before.execution.job.id, payment) &&
          !this.#isOfRefunded(job.id, payment) &&
          !(before.execution.job.id === job.id && this.#isClosedAgain(job.id)),
      );
      if (earlier !== undefined && made.payment !== null)
        this.violated('same_answer', `client ${made.intent.id} gets two receipts for one payment`);
    }
    if ('jobId' in answer && answer.jobId !== null && this.job(answer.jobId).status === 'absent') {
      // A start whose append has no answer yet may be stored later, and is then found under this id.
      if (answer.kind === 'refused')
        this.violated('link_exists', `a link to the job ${answer.jobId}, which does not exist`);
    }
  }

  /**
   * Answered the moment its process runs again, so that it has looked nothing up since; and all that the log has of the
   * payment was stored within that freeze, by another process that a copy was sent to: as if the answer was long on its way.
   */
  #isHeldBack({ relay, payment }: Made): boolean {
    const host = this.hosts.find(({ name }) => name === relay);
    if (host === undefined || payment === null || host.frozenUntil !== this.seen.scheduler.now) return false;
    const [first] = this.seen.log.read(STREAM.payment(payment.hash));
    return first !== undefined && Date.parse(first.created) - EPOCH > host.frozenFrom;
  }

  /**
   * Of another payment with the same key, which was refunded before this job of it started: the job sends nothing, the key
   * is free, and a copy of the call buys a job of its own.
   */
  #isOfRefunded(jobId: string, payment: PresentedPayment | null): boolean {
    const job = this.job(jobId);
    if (job.status !== 'completed' || job.completed.errorCategory !== 'not_executed') return false;
    const { paymentStream } = job.started;
    if (payment === null || paymentStream === null || paymentStream === STREAM.payment(payment.hash))
      return false;
    return this.payment(paymentStream).status === 'refunded';
  }

  /** Recovery closed it over a backup that lacks its end, before a witness showed that the log lacks events. */
  #isClosedAgain(jobId: string): boolean {
    const end = this.seen.log.read(STREAM.job(jobId)).find(({ type }) => type === 'JobCompleted');
    return (
      end?.data.closedBy === 'recovery' &&
      this.unnoticedSince !== null &&
      Date.parse(end.created) - EPOCH >= this.unnoticedSince
    );
  }

  // ── at the operators ──────────────────────────────────────────────────────────────────────────────────

  refundBegun(stream: string): void {
    this.#begun.set(stream, this.seen.scheduler.now);
  }

  refundCancelled(stream: string): void {
    this.#begun.delete(stream);
  }

  // ── whether anything is under way ─────────────────────────────────────────────────────────────────────

  /** What keeps the world from being at rest; null: nothing. */
  busyWith({
    position,
    areUp,
    isWitnessed,
  }: {
    readonly position: string | null;
    readonly areUp: boolean;
    /** A quorum of witnesses cosigns each checkpoint. */
    readonly isWitnessed: boolean;
  }): string | null {
    const { log, chain } = this.seen;
    if (!areUp) return 'a process is down';
    for (const { isResolved, relay } of this.calls)
      if (!isResolved && this.hosts.some(({ name, alive }) => alive && name === relay))
        return `${relay} owes an answer`;
    const run = this.runs?.busyWith() ?? null;
    if (run !== null) return run;
    for (const stream of this.streams('job-')) {
      const jobId = stream.slice('job-'.length);
      if (this.job(jobId).status === 'running') return `job ${jobId} is running`;
    }
    for (const stream of this.streams('payment-')) {
      const payment = this.payment(stream);
      // One that a process asked for whose clock was far behind lives for long: it is not waited for.
      const lives =
        payment.status !== 'absent' &&
        Number(payment.reserved.validBefore) * 1000 > EPOCH + this.seen.scheduler.now + FAR_AHEAD_MS;
      if (payment.status === 'refunding') return `${stream} is refunding`;
      if (!lives && ['reserved', 'unknown', 'retried'].includes(payment.status))
        return `${stream} is ${payment.status}`;
    }
    chain.mine();
    const last = Math.max(0, ...chain.transactions.map(({ block }) => block ?? 0));
    const compared = log.events.findLast(({ type }) => type === 'ChainReconciled');
    if (this.seen.isPaid && last > Number(compared?.data.toBlock ?? 0))
      return `block ${last} is not compared`;
    if (
      compared !== undefined &&
      chain.block(Number(compared.data.toBlock))?.hash !== compared.data.blockHash
    )
      return 'the compared block is replaced';
    const chargedAt = Math.max(
      0,
      ...log.events
        .filter(({ type }) => type === 'PaymentSettled')
        .map(({ created, data }) => chargeTime(Date.parse(created), Date.parse(String(data.settledAt)))),
    );
    if (
      this.seen.isPaid &&
      chargedAt > 0 &&
      Date.parse(String(compared?.data.blockTime ?? 0)) < chargedAt + 45_000
    )
      return 'a charge is not compared';
    // A scan left it out: the books stay short until a look-up of the charge finds it and its blocks are read again.
    if (this.seen.isPaid && isShort(log, chain)) return 'a transfer in a compared block is not in the books';
    const sizeOf = (name: string) => Number(log.events.findLast(({ type }) => type === name)?.data.size ?? 0);
    if (isWitnessed && sizeOf('CheckpointSigned') > sizeOf('CheckpointCosigned'))
      return 'the newest checkpoint is not cosigned';
    return position === (log.events.at(-1)?.position ?? null) ? null : `the rows are at ${position}`;
  }
}

/** The rounds that no later one replaced have received less than the chain has in their blocks. */
function isShort(log: LogStore, chain: MemoryChain): boolean {
  const rounds = log.events.filter(({ type }) => type === 'ChainReconciled').reverse();
  const last = Number(rounds[0]?.data.toBlock ?? 0);
  let from = Number.POSITIVE_INFINITY;
  let received = 0n;
  for (const { data } of rounds) {
    if (Number(data.toBlock) >= from) continue;
    from = Number(data.fromBlock);
    received += BigInt(String(data.received));
  }
  return rounds.length > 0 && received < chain.received(last, PAYEE) - chain.received(from - 1, PAYEE);
}
