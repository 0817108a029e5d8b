// One process of the service: the real use cases, projector, recovery, reconciler and checkpoints, composed as `src/app` does
// over simulated ports. A process that is ended leaves nothing; one that is stopped ends in order.

import { Projector } from '#projections/projector.ts';
import { readModels, readModelsUnavailable } from '#projections/read-models.ts';
import { withTree } from '#projections/with-tree.ts';
import { temporalCalendar } from '#src/adapters/calendar/temporal.ts';
import { describeAddress } from '#src/adapters/outbound/addresses.ts';
import { demoPayments } from '#src/adapters/payments/demo.ts';
import { lookAt, stateOf, type Windows } from '#src/adapters/quota/memory.ts';
import { orderlyEnding, untilIdle } from '#src/app/shutdown.ts';
import { placesOf } from '#src/domain/places.ts';
import type { Refused } from '#src/domain/refusal.ts';
import type { ScheduleRequest } from '#src/domain/schedule/plan.ts';
import { iso } from '#src/lib/iso.ts';
import { unlessAborted } from '#src/lib/time.ts';
import type { CheckpointStore } from '#src/ports/checkpoint-store.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { KeyStore } from '#src/ports/key-store.ts';
import { orLogFault } from '#src/ports/outage.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import type { Quota, QuotaRule } from '#src/ports/quota.ts';
import { type ExecuteDeps, executeWebhook } from '#src/usecases/execution/execute-webhook.ts';
import type { ExecuteInput, Execution } from '#src/usecases/execution/execution-call.ts';
import {
  claimTurns,
  guessLimit,
  inFlightSlots,
  unconfirmedPayments,
} from '#src/usecases/execution/process-limits.ts';
import { keepRecovering } from '#src/usecases/execution/recover-jobs.ts';
import { UnchargedLimit } from '#src/usecases/execution/uncharged-limit.ts';
import { VerifyLimit } from '#src/usecases/execution/verify-limit.ts';
import { type JournalDeps, load, SCHEDULE } from '#src/usecases/process/stream.ts';
import { streamWatch } from '#src/usecases/process/watch.ts';
import { receiptJudge } from '#src/usecases/receipts/judge-receipt.ts';
import { RECENT_MS } from '#src/usecases/reconciliation/judge-open.ts';
import { chainReconciler } from '#src/usecases/reconciliation/reconciler.ts';
import { type Bought, type Buyer, createSchedule, fundRun } from '#src/usecases/schedules/buy-run.ts';
import { type CancelledSchedule, cancelSchedule } from '#src/usecases/schedules/end-run.ts';
import { type Quote, quoteRun, quoteSchedule, scheduleNotFound } from '#src/usecases/schedules/quote.ts';
import { type RunnerDeps, ScheduleRunner } from '#src/usecases/schedules/runner.ts';
import { SharedClock } from '#src/usecases/schedules/shared-clock.ts';
import { activeKeys } from '#src/usecases/signing-keys/active-keys.ts';
import { activateSigningKeys, keyDirectory } from '#src/usecases/signing-keys/key-ring.ts';
import { openCheckpoints } from '#src/usecases/transparency/checkpoints.ts';
import { firstComparison } from '#src/usecases/transparency/whole-record.ts';
import { Witnesses } from '#src/usecases/witnesses/witnesses.ts';
import type { MemoryChain } from '#test/support/chain/memory-chain.ts';
import { targetRules } from '#test/support/world/fakes-world.ts';
import type { Cosigners } from './cosigners.ts';
import type { Host } from './host.ts';
import { checkpointRecord, keyedHash, primitives } from './keys.ts';
import { type LogAccess, type LogStore, logAccess } from './log.ts';
import { PAYEE, type PaymentWitness, simulatedPayments, simulatedScan } from './payments.ts';
import { type RowStorage, simulatedStore } from './row-store.ts';
import { type Hit, simulatedOutbound, simulatedResolver } from './target.ts';
import { simulatedVault, type VaultStore } from './vault.ts';
import type { Weather } from './weather.ts';

/** What the processes of a deployment share. */
export type Deployment = {
  readonly log: LogStore;
  readonly chain: MemoryChain;
  /** One for all processes, as a shared store has them. */
  readonly quota: Windows;
  readonly vault: VaultStore;
  readonly keys: KeyStore;
  /** null: the log has no witnesses. */
  readonly cosigners: Cosigners | null;
  /** null: this deployment sells no schedules. The payments for runs, by the value of their header. */
  readonly tickets: Map<string, PresentedPayment> | null;
  readonly isPaid: boolean;
  /** One process at a time, proven by a lock; its rows are embedded. */
  readonly exclusive: boolean;
  readonly weather: Weather;
  readonly witness: PaymentWitness & {
    hit(hit: Hit): void;
    quotaTaken(rule: QuotaRule, key: string, host: Host): void;
  };
};

export type Relay = {
  readonly host: Host;
  readonly access: LogAccess;
  readonly store: ReturnType<typeof simulatedStore>;
  /** Rejects if it cannot start. */
  readonly started: Promise<void>;
  /** null: it does not accept calls. */
  execute(input: ExecuteInput): Promise<Execution | Refused> | null;
  /** null: it does not accept calls, or sells no schedules. */
  schedules(): Schedules | null;
  /** Ends in order; resolves when everything has ended. */
  stop(): Promise<void>;
  /** Position up to which its rows can be read. */
  position(): string | null;
  isWhole(): boolean;
};

/** What the routes of schedules do. */
export type Schedules = {
  quote(order: ScheduleRequest | string): Promise<Quote | Refused>;
  create(request: ScheduleRequest, buyer: Buyer): Promise<Bought | Refused>;
  fund(scheduleId: string, buyer: Buyer): Promise<Bought | Refused>;
  cancel(scheduleId: string, token: string): Promise<CancelledSchedule | Refused>;
};

const simulatedQuota = ({ quota, witness }: Deployment, host: Host): Quota => ({
  take: (rule, key) =>
    host.call(null, () => {
      witness.quotaTaken(rule, key, host);
      return stateOf(rule, quota.add(rule, key));
    }),
  look: (rule, key) => host.call(null, () => lookAt(quota, rule, key)),
});

/** With quotas of targets. */
const RULES = { ...targetRules, mode: 'blocklist-quota' } as const;
export const ORIGIN_HOST = 'relay.example';
const RECONCILE_MS = 20_000;
const CANDIDATES_MAX = 1000;
const HORIZON_MS = 30 * 86_400_000;
const calendar = temporalCalendar();

/** The checkpoint file of one machine. */
export function noteKeep(host: Host, file: { note: string | null }): CheckpointStore {
  return {
    location: 'the checkpoint file',
    read: () => host.call(null, () => file.note),
    write: (note) =>
      host.call(
        'a write of the checkpoint file',
        () => {
          file.note = note;
        },
        { counts: true },
      ),
  };
}

export function startRelay(
  shared: Deployment,
  host: Host,
  { rows, note }: { readonly rows: RowStorage; readonly note: { note: string | null } | null },
): Relay {
  const { weather, exclusive } = shared;
  const access = logAccess(shared.log, host, weather.log);
  const store = simulatedStore(rows, host, weather.store, { disposable: exclusive, trace: host.trace });
  const ending = orderlyEnding(host.clock);
  let running: Awaited<ReturnType<typeof open>> | null = null;

  const started = open(shared, host, access.log, store, ending, note).then((opened) => {
    running = opened;
  });
  started.catch(() => undefined);
  return {
    host,
    access,
    store,
    started,
    execute: (input) => (running === null || ending.stopping.aborted ? null : running.execute(input)),
    schedules: () => (running === null || ending.stopping.aborted ? null : running.schedules),
    stop: () => ending.end(),
    position: () => running?.position() ?? null,
    isWhole: () => running?.isWhole() ?? true,
  };
}

/** As `wireSchedules` does. */
function openSchedules(
  { tickets, vault: store, weather, exclusive }: Deployment,
  host: Host,
  given: ExecuteDeps & Pick<RunnerDeps, 'stopping' | 'candidates'>,
): { readonly routes: Schedules; readonly ended: Promise<void> } | null {
  if (tickets === null) return null;
  const vault = simulatedVault(store, host, weather.vault, exclusive);
  const deps: RunnerDeps = {
    ...given,
    vault,
    calendar,
    horizonMs: HORIZON_MS,
    sharedClock: new SharedClock({ vault, clock: host.clock, logger: host.logger }),
    runsAtOnce: 128,
    authorizations: {
      write: ({ nonce }) => JSON.stringify({ nonce }),
      async open(text) {
        const { nonce } = JSON.parse(text);
        const known = tickets.get(nonce);
        if (known === undefined) throw new Error(`there is no authorization ${nonce}`);
        return known;
      },
    },
  };
  const routes: Schedules = {
    async quote(order) {
      if (typeof order !== 'string') return quoteSchedule(deps, order);
      const { state } = await orLogFault(load(deps, SCHEDULE, order), 'repeat the request.');
      if (state.status === 'absent') return scheduleNotFound();
      const { defined, status, next } = state;
      return quoteRun(deps, {
        ...defined,
        status,
        nextRun: next?.run ?? null,
        nextDueAt: next?.dueAt ?? null,
      });
    },
    create: (request, buyer) => createSchedule(deps, request, buyer),
    fund: (scheduleId, buyer) => fundRun(deps, scheduleId, buyer),
    cancel: (scheduleId, token) => cancelSchedule(deps, scheduleId, token),
  };
  return { routes, ended: new ScheduleRunner(deps).run() };
}

/** As `src/app/witnesses.ts` does. */
async function openWitnesses(
  cosigners: Cosigners,
  host: Host,
  journal: JournalDeps,
  stopping: AbortSignal,
): Promise<Witnesses> {
  const { policy, intervalMs } = cosigners;
  const reached = cosigners.ports(host);
  const witnesses = policy.witnesses.flatMap((known, n) => {
    const port = reached[n];
    return port === undefined ? [] : [{ known, port }];
  });
  const { quorum } = policy;
  const asking = new Witnesses({ ...journal, witnesses, quorum, intervalMs, primitives, stopping });
  await asking.open();
  return asking;
}

/** As `startService` does: keys, checkpoints, what runs beside the calls, and the calls. */
async function open(
  shared: Deployment,
  host: Host,
  log: EventLog,
  store: ReturnType<typeof simulatedStore>,
  ending: ReturnType<typeof orderlyEnding>,
  note: { note: string | null } | null,
) {
  const { exclusive, weather } = shared;
  const { clock, entropy, logger } = host;
  const journal = { log, clock, entropy, logger, ending: ending.signal };
  const content = shared.keys.read();
  const { keys: announced } = await activateSigningKeys(journal, content);
  const directory = keyDirectory(journal, announced);
  const own = activeKeys({ store: shared.keys, directory, clock, logger }, content);
  const watching = own.watch(ending.signal);
  ending.push(() => watching);
  const { cosigners } = shared;
  const witnesses = cosigners && (await openWitnesses(cosigners, host, journal, ending.stopping));
  const checkpoints = await openCheckpoints({
    witnesses,
    ...journal,
    checkpointSigner: own.checkpointSigner,
    checkpointKeys: () => [...directory.list(), ...content.keys.flatMap(checkpointRecord)],
    directory,
    checkpointKeep: note === null ? null : noteKeep(host, note),
    primitives,
  });
  const owner = `${host.name} ${entropy.uuid()}`;
  const listens = Promise.withResolvers<void>();
  const judgeReceipt = receiptJudge({ log, primitives });
  const projector = new Projector(
    { log, store, judgeReceipt, clock, logger },
    { after: listens.promise, batchSize: weather.batchSize },
  );
  ending.push(() => projector.stop());
  const models = readModels({ store: projector, clock, logger, ready: () => projector.ready() });
  const comparison = {
    clock,
    compared: () => projector.compared(),
    isOpening: () => projector.isOpening(),
    compareKept: checkpoints.compareKept,
  };
  const compared = exclusive
    ? Promise.resolve()
    : unlessAborted(listens.promise, ending.signal).then(() => firstComparison(comparison, ending.signal));
  const recordIsWhole = () => compared.then(checkpoints.isWhole);
  const slots = inFlightSlots(100);
  const recovery = keepRecovering({
    ...journal,
    owner,
    signer: own.signer,
    receiptLog: checkpoints.promised,
    exclusive,
    recordIsWhole,
    async candidates(alone) {
      if (alone && projector.stoppedAt() === null && !(await projector.reachedHead()))
        throw readModelsUnavailable();
      return models.monitoring.recoveryCandidates(CANDIDATES_MAX);
    },
  });
  let signing: ReturnType<typeof checkpoints.keep> | null = null;
  ending.push(async () => {
    await untilIdle({ slots, ...journal }, ending.left());
    await signing?.stop();
    ending.abort();
    await recovery.ended;
  });
  await checkpoints.begin(ORIGIN_HOST);
  signing = checkpoints.keep(ORIGIN_HOST, {
    position: () => projector.position(),
    movedFrom: (position, signal) => projector.progress.movedFrom(position, signal),
    role: () => projector.role(),
    reachedHead: () => projector.reachedHead(),
    checkpointsElsewhere: () => projector.checkpointsElsewhere(),
    withTree: async (run) => withTree(await projector.open(), run),
  });
  const readTile = (level: number, n: number) => models.transparency.tile(level, n);
  const asking = witnesses?.run({ checkpoints, rows: { role: () => projector.role(), readTile } });
  ending.push(async () => asking);
  const payments = shared.isPaid
    ? simulatedPayments(shared.chain, host, weather.payments, shared.witness)
    : demoPayments();
  const { stopping } = ending;
  if (shared.isPaid) {
    const scan = simulatedScan(shared.chain, host, weather.payments);
    const ledger = async () => {
      await projector.reachedHead();
      return models.payment.ledger(CANDIDATES_MAX, iso(clock.now() - RECENT_MS));
    };
    const chain = { scan, payee: PAYEE, intervalMs: RECONCILE_MS, lookUp: payments.lookUp, ledger };
    const reconciling = chainReconciler({ ...journal, ...chain, stopping }).run();
    ending.push(() => reconciling);
  }
  const quota = simulatedQuota(shared, host);
  const deps: ExecuteDeps = {
    ...journal,
    owner,
    baseUrl: `https://${ORIGIN_HOST}`,
    pseudonym: ORIGIN_HOST,
    signer: own.signer,
    agentSigner: null,
    keyedHash,
    receiptLog: checkpoints.promised,
    rules: RULES,
    describeAddress,
    resolver: simulatedResolver(host, weather.target),
    outbound: simulatedOutbound(host, weather.target, (hit) => shared.witness.hit(hit)),
    payments,
    quota,
    targetQuotaPerMinute: 1000,
    slots,
    exclusive,
    watch: streamWatch(clock),
    foundRunning: recovery.foundRunning,
    recordIsWhole,
    unconfirmed: unconfirmedPayments(),
    uncharged: new UnchargedLimit({ ...journal, quota }),
    guesses: guessLimit(clock),
    confirmWaitMs: weather.confirmWaitMs,
    stopping,
    takeTurn: claimTurns(clock),
    verifies: new VerifyLimit(clock, placesOf(512, { hasSchedules: true })),
  };
  const candidates = (untilMs: number) => models.schedule.due(iso(untilMs), CANDIDATES_MAX);
  const schedules = openSchedules(shared, host, { ...deps, stopping, candidates });
  if (schedules !== null) ending.push(() => schedules.ended);
  listens.resolve();
  return {
    schedules: schedules?.routes ?? null,
    execute: (input: ExecuteInput) => executeWebhook(deps, input),
    position: () => projector.position(),
    isWhole: () => checkpoints.isWhole(),
  };
}
