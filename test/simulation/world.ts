// A deployment under a seed: its processes, which are ended, stopped, frozen and started again, its buyers and operators, and
// the faults around them; then calm, until everything that began has come to its end.

import { Windows } from '#src/adapters/quota/memory.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { Random } from '#test/support/world/random.ts';
import { buy, drawIntent, type Intent, present, signPayment } from './buyers.ts';
import { Cosigners } from './cosigners.ts';
import { Host } from './host.ts';
import { keyFile } from './keys.ts';
import { LogStore } from './log.ts';
import { type Office, refundDue, rotate } from './operators.ts';
import { drawOrder, meddle, type Order, type OrderMarket, order } from './orders.ts';
import { simulatedChain } from './payments.ts';
import { type Deployment, ORIGIN_HOST, type Relay, startRelay } from './relay.ts';
import { RowStorage } from './row-store.ts';
import { RunWitness } from './run-witness.ts';
import { Scheduler } from './scheduler.ts';
import { Trace } from './trace.ts';
import { VaultStore } from './vault.ts';
import { calm, drawWeather, type Weather } from './weather.ts';
import { Witness } from './witness.ts';

/** Virtual ms. */
const ACTIVE_MS = 240_000;
const CALM_MAX_MS = 900_000;
const DAY_MS = 86_400_000;
/** No seed needs so many. */
const STEPS_MAX = 400_000;
/** One of so many seeds has schedules, which take long, another one new signing keys, and another one witnesses. */
const KINDS = 4;
const ORDERS_KIND = 0;
const KEYS_KIND = 1;
const WITNESS_KIND = 2;

/** Runs of such seeds may still start when everything has ended. */
const SNAPSHOT_CATCH_UP_SECONDS = 300;

/** Leaves of the transparency log. */
const LEAVES = ['ReceiptSigned', 'SigningKeyActivated', 'SigningKeyRetired'];

/** After these, something is about to be done that must not be done twice. */
const CRITICAL = [
  'PaymentReserved',
  'IdempotencyKeyClaimed',
  'SettlementRetried',
  'PaymentSettled',
  'JobStarted',
  'AttemptMade',
  'PaymentDeferred',
  'RunStarted',
  'RunSkipped',
  'PaymentReleased',
  'ScheduleCancelled',
];

type Place = {
  rows: RowStorage;
  note: { note: string | null };
  relay: Relay | null;
  generation: number;
  isClosed: boolean;
  /** Counts how often it was opened: what kept it before may still wait. */
  opening: number;
};

export class World {
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly trace: Trace;
  readonly weather: Weather;
  readonly shared: Deployment;
  readonly witness: Witness;
  readonly intents: Intent[];
  readonly orders: readonly Order[];
  readonly places: Place[];
  readonly office: Office;
  isCalm = false;
  readonly #restores: boolean;
  /** The seed ends with an older snapshot of everything that the deployment has stored. */
  readonly isSnapshot: boolean;
  readonly #stranger: Random;
  readonly #ordering: Random;
  readonly #ofChain: Random;
  readonly #market: OrderMarket;
  /** The processes have one time, and see at the same moment that a run is due. */
  readonly #isTogether: boolean;
  /** null: the signing keys stay as they are. */
  readonly #rotating: Random | null;

  constructor(seed: number, keepsTrace: boolean) {
    const random = new Random(seed);
    this.random = random;
    this.scheduler = new Scheduler(random.fork());
    const { scheduler } = this;
    this.trace = new Trace(scheduler, keepsTrace);
    const { trace } = this;
    this.weather = drawWeather(random);
    const isPaid = random.chance(0.8);
    const exclusive = random.chance(0.35);
    const log = new LogStore(trace, () => scheduler.now, exclusive || seed % 2 === 0);
    this.#ofChain = random.fork();
    const chain = simulatedChain(scheduler, this.#ofChain, trace);
    const keepsState = this.weather.payments.stateGone === 0;
    this.witness = new Witness({ log, chain, scheduler, trace, isPaid, keepsState });
    const { weather, witness } = this;
    // Of numbers of its own: the other seeds keep their meaning.
    const ordering = new Random(seed ^ 0x5c4ed);
    const tickets = seed % KINDS === ORDERS_KIND ? new Map() : null;
    const vault = new VaultStore();
    const quota = new Windows(undefined, () => this.scheduler.now);
    const keys = keyFile();
    this.#rotating = seed % KINDS === KEYS_KIND ? new Random(seed ^ 0x6b657) : null;
    const ofWitnesses = { keys, origin: `${ORIGIN_HOST}/receipts` };
    const cosigners =
      seed % KINDS === WITNESS_KIND
        ? new Cosigners(new Random(seed ^ 0x77697), scheduler, ofWitnesses)
        : null;
    this.shared = { log, chain, quota, vault, keys, cosigners, tickets, isPaid, exclusive, weather, witness };
    this.#ordering = ordering;
    this.#isTogether = tickets !== null && new Random(seed ^ 0x70e7).chance(0.5);
    this.#restores = random.chance(0.12);
    const rows = new RowStorage();
    const count = exclusive ? 1 : random.int(1, 3);
    this.places = Array.from({ length: count }, () => ({
      rows,
      note: { note: null },
      relay: null,
      generation: 0,
      isClosed: false,
      opening: 0,
    }));
    this.intents = Array.from({ length: random.int(2, 6) }, (_, id) => drawIntent(random, id + 1, isPaid));
    witness.intents = this.intents;
    const orderCount = tickets === null ? 0 : ordering.int(1, 2);
    this.#stranger = new Random(seed ^ 0x57a46);
    this.isSnapshot = tickets !== null && isPaid && this.#stranger.chance(0.4);
    const ofOrders = { isPaid, catchUpSeconds: this.isSnapshot ? SNAPSHOT_CATCH_UP_SECONDS : null };
    this.orders = Array.from({ length: orderCount }, (_, id) => drawOrder(ordering, id + 1, ofOrders));
    const { orders } = this;
    const runs = tickets === null ? null : new RunWitness(witness, { vault, exclusive, orders });
    witness.runs = runs;
    this.#market = {
      scheduler,
      trace,
      chain,
      isPaid,
      relays: () => this.places.flatMap(({ relay }) => (relay?.host.alive ? [relay] : [])),
      onMade: (made) => witness.made(made),
      onAnswer: (made, answer) => witness.answered(made, answer),
      isCalm: () => this.isCalm,
      tickets: tickets ?? new Map(),
      onDefect: (detail) => witness.violated('no_defect', detail),
      onBought: ({ scheduleIds }, { schedule }) => void scheduleIds.add(schedule.defined.scheduleId),
      isOpen: (ids) => runs !== null && runs.openRun(ids) !== null,
      foreign: runs?.foreign ?? [],
      onForeignRun: (detail) => witness.violated('not_of_strangers', detail),
    };
    this.office = {
      scheduler,
      trace,
      chain,
      log,
      weather,
      witness,
      commands: 0,
      sent: new Map(),
      isCalm: () => this.isCalm,
      onBegun: (stream) => witness.refundBegun(stream),
      onCancelled: (stream) => witness.refundCancelled(stream),
    };
    const spite = random.fork();
    witness.onStored = (event) => this.#react(spite, event);
    trace.note(
      `seed ${seed}: ${count} ${exclusive ? 'process with embedded rows' : 'processes with shared rows'}, ${isPaid ? 'paid' : 'free'} calls, ${this.intents.length} buyers, ${orders.length} orders of schedules`,
    );
    trace.reached(isPaid ? 'paid world' : 'free world');
    trace.reached(exclusive ? 'embedded world' : `world of ${count}`);
  }

  async run(): Promise<void> {
    const { scheduler, random, weather } = this;
    for (const place of this.places) void this.#keep(place, random.fork());
    const buying = Promise.all([
      ...this.intents.map((intent) => buy(this.#market, random.fork(), intent)),
      ...this.orders.map((it) => order(this.#market, this.#ordering.fork(), it)),
    ]);
    if (this.shared.tickets !== null && this.#ordering.chance(0.06))
      void this.#loseVault(this.#ordering.fork());
    if (this.orders.length > 0) void meddle(this.#market, this.#stranger.fork(), this.orders);
    let areDone = false;
    void buying.then(() => {
      areDone = true;
    });
    if (weather.disturbedEvery > 0) void this.#disturb(random.fork());
    if (this.shared.isPaid) void this.#refund(random.fork());
    const rotating = this.#rotating;
    if (rotating !== null) void this.#rotate(rotating.fork());
    await scheduler.run(ACTIVE_MS, () => areDone, STEPS_MAX);
    await this.#becomeCalm(() => areDone);
    if (random.chance(0.15)) await this.#afterDays(random.fork());
    // By then the keys that were replaced have expired.
    else if (rotating?.chance(0.4)) await this.#afterDays(rotating.fork());
  }

  /** Stops the processes in order. Returns what did not end. */
  async stop(): Promise<readonly string[]> {
    const { scheduler } = this;
    const left: string[] = [];
    for (const place of this.places) {
      place.isClosed = true;
      const { relay } = place;
      if (relay === null || !relay.host.alive) continue;
      let isStopped = false;
      void relay.stop().then(
        () => {
          isStopped = true;
        },
        (error: unknown) => {
          left.push(`${relay.host.name} failed to stop: ${error}`);
          isStopped = true;
        },
      );
      await scheduler.run(scheduler.now + 130_000, () => isStopped, scheduler.steps + STEPS_MAX);
      if (!isStopped) left.push(`${relay.host.name} did not stop`);
      // `#keep` may have been stopping it already, and then ends it at once: its last calls stay without an answer.
      const { host } = relay;
      const isAtRest = () => !host.alive || host.pending === 0;
      await scheduler.run(scheduler.now + 5000, isAtRest, scheduler.steps + STEPS_MAX);
      if (!isAtRest()) left.push(`${relay.host.name} has ${relay.host.pending} calls without an answer`);
    }
    return left;
  }

  /** Runs one process after another at a place, until the place is closed. */
  async #keep(place: Place, random: Random): Promise<void> {
    const { scheduler, shared, trace, weather } = this;
    let { kills } = weather;
    const at = this.places.indexOf(place) + 1;
    const opening = ++place.opening;
    while (!place.isClosed && place.opening === opening) {
      const name = `process ${at}.${++place.generation}`;
      const host = new Host(name, scheduler, random.fork(), trace);
      // The keys are valid from the first start on by its clock: one that is far ahead then keeps a service from working.
      host.wallOffset = skew(random, this.isCalm || shared.log.events.length === 0 ? 0 : 1);
      if (this.#isTogether) [host.wakesTogether, host.wallOffset] = [true, 0];
      this.witness.hosts.push(host);
      if (!this.isCalm && kills > 0 && random.chance(0.8)) {
        kills--;
        host.killIn = random.int(1, random.chance(0.5) ? 12 : 60);
      }
      trace.note(`${name} starts, its clock ${Math.round(host.wallOffset)} ms ahead`);
      const killed = new Promise<'killed'>((resolve) => host.whenKilled(() => resolve('killed')));
      const relay = startRelay(shared, host, {
        rows: place.rows,
        note: shared.exclusive ? place.note : null,
      });
      const start = await Promise.race([
        killed,
        relay.started.then(
          () => 'started' as const,
          () => 'failed' as const,
        ),
      ]);
      if (start === 'started') place.relay = relay;
      const stops = !this.isCalm && random.chance(weather.stops / 3);
      if (start === 'failed') host.kill('because it could not start');
      else if (start === 'started' && stops) {
        await Promise.race([scheduler.sleep(random.between(5000, 90_000)), killed]);
        if (host.alive) {
          trace.note(`${name} is asked to stop`);
          await Promise.race([relay.stop().catch(() => undefined), killed]);
          host.kill('in order');
          trace.reached('orderly stop');
          await scheduler.sleep(random.between(10, 5000));
          continue;
        }
      } else if (start === 'started') await killed;
      trace.reached(start === 'failed' ? 'start that fails' : 'process ended');
      // Embedded rows that were not closed in order are built again.
      if (shared.exclusive) place.rows = new RowStorage();
      await scheduler.sleep(random.chance(0.2) ? random.between(1000, 150_000) : random.between(10, 3000));
    }
  }

  async #rotate(random: Random): Promise<void> {
    for (let left = random.int(1, 3); left > 0; left--) {
      await this.scheduler.sleep(random.between(2000, 60_000));
      if (this.isCalm) return;
      await rotate(this.office, random, this.shared.keys);
    }
  }

  async #loseVault(random: Random): Promise<void> {
    await this.scheduler.sleep(random.between(10_000, 90_000));
    if (this.isCalm) return;
    this.shared.vault.lose();
    this.trace.note('the keys of the vault are lost');
    this.trace.reached('lost vault');
  }

  async #disturb(random: Random): Promise<void> {
    const { scheduler, weather, shared, trace } = this;
    for (;;) {
      await scheduler.sleep(weather.disturbedEvery * 1000 * random.between(0.3, 1.7));
      if (this.isCalm) return;
      const relay = random.pick(this.places).relay;
      const kind = random.weighted({
        away: 3,
        allAway: 1,
        freeze: 2,
        step: 1,
        drop: 1,
        reorg: shared.isPaid ? 2 : 0,
        connections: 1,
      });
      trace.reached(`disturbance: ${kind}`);
      const ms = random.chance(0.2) ? random.between(30_000, 90_000) : random.between(200, 12_000);
      if (kind === 'reorg') {
        const depth = random.chance(0.8) ? random.int(1, 4) : random.int(5, 12);
        this.#reorganise(depth);
      } else if (kind === 'allAway') for (const each of this.places) each.relay?.access.away(ms);
      else if (relay === null) continue;
      else if (kind === 'away') relay.access.away(ms);
      else if (kind === 'freeze') relay.host.freeze(ms);
      else if (kind === 'drop') relay.access.dropSubscriptions();
      else if (kind === 'connections') relay.store.loseConnections();
      else {
        relay.host.setClock(skew(random));
        trace.note(`the clock of ${relay.host.name} is set to ${Math.round(relay.host.wallOffset)} ms ahead`);
      }
    }
  }

  #reorganise(depth: number): void {
    const { chain } = this.shared;
    const random = this.#ofChain;
    const removed = chain.reorganise(chain.height - depth, ({ kind }) => {
      // Operators do not send a refund twice: their transfers wait for another block.
      const isDropped = kind !== 'transfer' && random.chance(0.3);
      const ms = random.between(0, 8000);
      return isDropped ? null : ms;
    });
    this.trace.reached(removed > 0 ? 'reorganisation with transfers' : 'reorganisation of empty blocks');
  }

  /** Something happens at the worst moment: right after an event, to the process that has it appended. */
  #react(random: Random, { type, data }: RecordedEvent): void {
    const { scheduler, weather, trace, shared } = this;
    if (this.isCalm || !CRITICAL.includes(type) || !random.chance(weather.spite)) return;
    const isIts = ({ relay }: Place) => String(data.owner ?? '').startsWith(`${relay?.host.name} `);
    const relay = (this.places.find(isIts) ?? random.pick(this.places)).relay;
    const kind = random.weighted({
      away: 2,
      freeze: 2,
      kill: 1,
      refund: shared.isPaid && type === 'PaymentSettled' ? 4 : 0,
    });
    trace.reached(`right after an event: ${kind}`);
    const ms = random.chance(0.5) ? random.between(16_000, 100_000) : random.between(100, 6000);
    if (kind === 'refund') {
      const fork = random.fork();
      // The job's start is held up until about the time at which the refund begins: the block of the charge counts by then.
      const heldMs = random.between(4000, 12_000);
      if (random.chance(0.8)) relay?.access.away(heldMs);
      scheduler.after(
        heldMs + random.between(-100, 2200),
        null,
        () => void refundDue(this.office, fork, true),
      );
    } else if (relay === null) return;
    else if (kind === 'away') relay.access.away(ms);
    else if (kind === 'freeze') relay.host.freeze(ms);
    else relay.host.kill(`right after ${type}`);
  }

  async #refund(random: Random): Promise<void> {
    const { scheduler } = this;
    for (;;) {
      await scheduler.sleep(random.between(20_000, 90_000));
      if (this.isCalm) return;
      await refundDue(this.office, random, false);
    }
  }

  /** The faults end; then time passes until nothing is under way, at most 15 minutes. */
  async #becomeCalm(areDone: () => boolean): Promise<void> {
    const { scheduler, weather, trace } = this;
    this.isCalm = true;
    calm(weather);
    this.shared.cosigners?.calm();
    trace.note('the faults end');
    for (const host of this.witness.hosts) {
      host.killIn = null;
      host.setClock(skew(this.random, 0) * (this.#isTogether ? 0 : 1));
    }
    for (const { relay } of this.places) relay?.access.restored();
    let isQuiet = false;
    const random = this.random.fork();
    const waiting = (async () => {
      for (;;) {
        await scheduler.sleep(5000);
        if (!areDone()) continue;
        if (this.shared.isPaid) await refundDue(this.office, random, true);
        if (!this.#isBusy()) break;
      }
      isQuiet = true;
    })();
    await scheduler.run(scheduler.now + CALM_MAX_MS, () => isQuiet, scheduler.steps + STEPS_MAX);
    void waiting;
    if (!isQuiet)
      this.witness.violated(
        'quiet',
        `15 minutes after the faults ended: ${this.witness.busyWith(this.#rows()) ?? 'a client is not done'}`,
      );
  }

  #rows = () => ({
    position: this.places[0]?.rows.current()?.head.position ?? null,
    areUp: this.places.every(({ relay }) => relay?.host.alive === true),
    isWitnessed: this.shared.cosigners !== null,
  });

  #isBusy(): boolean {
    return this.witness.busyWith(this.#rows()) !== null;
  }

  /** Whether the seed ends with an older backup of the event log. */
  get restores(): boolean {
    return this.#restores;
  }

  /**
   * After everything has ended, the event log is replaced by an older backup that lacks the last checkpoint: the processes
   * must notice it, and send, charge and sign nothing.
   */
  async restore(): Promise<void> {
    const { scheduler, shared, trace, witness } = this;
    const { log } = shared;
    const random = this.random.fork();
    // Shared rows know what is projected: a checkpoint that was signed while the last process stopped is not.
    const known = shared.exclusive ? null : (this.places[0]?.rows.current()?.head.position ?? '');
    // Nothing else of the machine is left: only its witnesses know what the backup lacks.
    const witnessed = shared.cosigners !== null && random.chance(0.6) ? shared.cosigners.size : null;
    const isKnown = (position: string, size: number) =>
      witnessed === null ? known === null || position <= known : size <= witnessed;
    const last = log.events.findLast(
      ({ type, data, position }) =>
        type === 'CheckpointSigned' && data.size !== '0' && isKnown(position, Number(data.size)),
    );
    const first = log.events.find(({ type }) => type === 'CheckpointSigned');
    if (last === undefined || first === undefined || last === first) return;
    for (const { relay } of this.places) relay?.host.kill('in order');
    const ends = log.ends.filter((end) => end >= Number(first.position) && end < Number(last.position));
    const count = random.pick(ends);
    trace.note(`the event log is replaced by a backup of its first ${count} events`);
    trace.reached('older backup of the log');
    log.cut(count);
    if (witnessed !== null) witness.unnoticedSince = scheduler.now;
    const before = { hits: witness.hits.length, settles: witness.settleCount() };
    const leaves = log.events.filter(({ type }) => LEAVES.includes(type)).length;
    const rows = new RowStorage();
    for (const place of this.places) {
      if (witnessed !== null) [place.rows, place.note.note] = [rows, null];
      place.isClosed = false;
      void this.#keep(place, random.fork());
    }
    if (witnessed !== null) trace.reached('older backup that only witnesses notice');
    let areDone = false;
    void (async () => {
      await scheduler.sleep(witnessed === null ? random.between(500, 40_000) : 60_000);
      for (const intent of this.intents)
        await present(this.#market, random, intent, intent.payments.at(-1) ?? null);
      await scheduler.sleep(20_000);
      areDone = true;
    })();
    await scheduler.run(scheduler.now + CALM_MAX_MS, () => areDone, scheduler.steps + STEPS_MAX);
    if (witness.hits.length > before.hits)
      witness.violated('rollback_noticed', 'a call is sent over a log that lacks events');
    if (witness.settleCount() > before.settles)
      witness.violated('rollback_noticed', 'a payment is settled over a log that lacks events');
    const made = log.events.slice(count);
    // Witnesses are asked after the first one is signed.
    if (witnessed === null && made.some(({ type }) => type === 'CheckpointSigned'))
      witness.violated('rollback_noticed', 'a checkpoint is signed over a log that lacks events');
    // One that does not start, because the backup lacks the key that it signs with, does nothing.
    if (made.some(({ type, data }) => type === 'CheckpointCosigned' && Number(data.size) > leaves))
      witness.violated('rollback_noticed', 'a checkpoint is cosigned over a log that lacks events');
    for (const { relay } of this.places)
      if (relay?.host.alive && relay.isWhole())
        witness.violated('rollback_noticed', `${relay.host.name} takes the log for whole`);
  }

  /**
   * After everything has ended, log, rows, vault and note are replaced by a snapshot from before a run has started: nothing
   * but the chain shows that it was executed, and it must not be sent again.
   */
  async restoreSnapshot(): Promise<void> {
    const { scheduler, shared, trace, witness } = this;
    const { log, vault } = shared;
    const random = this.#stranger.fork();
    const runs = witness.runs?.sentRuns(scheduler.now + 30_000) ?? [];
    if (runs.length === 0) return;
    for (const { relay } of this.places) relay?.host.kill('in order');
    const { from, to } = random.pick(runs);
    const ends = log.ends.filter(
      (end) => end >= from && end <= to && !(witness.runs?.isUnderWay(end) ?? false),
    );
    if (ends.length === 0) return;
    const count = random.pick(ends);
    trace.note(`a snapshot with the first ${count} events of the log is restored`);
    trace.reached('snapshot of everything');
    const sent = runs.filter((run) => run.to >= count).map(({ jobId }) => jobId);
    const hits = () => witness.hits.filter(({ jobId }) => sent.includes(jobId)).length;
    const before = hits();
    log.cut(count);
    vault.restore();
    // Their claims are gone: what moved no money may be settled again.
    witness.settles.clear();
    const rows = new RowStorage();
    for (const place of this.places) {
      [place.rows, place.note.note, place.isClosed] = [rows, null, false];
      void this.#keep(place, random.fork());
    }
    await scheduler.run(scheduler.now + 60_000, () => hits() > before, scheduler.steps + STEPS_MAX);
    if (hits() > before)
      witness.violated('sent_again', 'a run that was executed is sent again over a snapshot from before it');
  }

  /** Everything is stopped for days; then the buyers come back with what they have. */
  async #afterDays(random: Random): Promise<void> {
    const { scheduler, trace } = this;
    const days = random.pick([3, 8]);
    trace.reached(`pause of ${days} days`);
    const places = [...this.places];
    for (const place of places) place.isClosed = true;
    await this.stop();
    for (const { relay } of places) relay?.host.kill('in order');
    trace.note(`nothing runs for ${days} days`);
    await scheduler.run(scheduler.now + days * DAY_MS, () => false, scheduler.steps + STEPS_MAX);
    for (const place of places) {
      place.isClosed = false;
      void this.#keep(place, random.fork());
    }
    let areDone = false;
    void (async () => {
      await scheduler.sleep(5000);
      for (const intent of this.intents) {
        const last = intent.payments.at(-1) ?? null;
        await present(this.#market, random, intent, last);
        if (!this.shared.isPaid || intent.key === null || random.chance(0.5)) continue;
        const again = signPayment(random, intent.payer, scheduler.now, 110);
        intent.payments.push(again);
        await present(this.#market, random, intent, again);
      }
      areDone = true;
    })();
    await this.#becomeCalm(() => areDone);
  }
}

/** ms that a wall clock is ahead. `wrong`: 0 for one that is corrected all the time. */
function skew(random: Random, wrong: 0 | 1 = 1): number {
  const drawn = wrong * random.next();
  return random.between(-1, 1) * (drawn < 0.7 ? 2000 : drawn < 0.92 ? 20_000 : 3_600_000);
}
