// One tier under load and faults for the given time, and what log, target, chain and rows say of it in the end.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sleep } from '#src/lib/time.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { sendBatch } from '#test/support/chain/refund-batch.ts';
import { startCli } from '#test/support/process/cli-process.ts';
import { makeCluster } from '#test/support/process/cluster.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import { type Environment, type Service, waitFor } from '#test/support/process/service.ts';
import { makePaidWorld, type PaidWorld } from '#test/support/world/paid-world.ts';
import { recordedIn } from '#test/support/world/service-log.ts';
import { faultsOf } from './faults.ts';
import { type Counts, type Load, type SoakCall, startLoad } from './load.ts';
import type { Sample } from './probe.ts';

export const SOAK_TIERS = ['embedded', 'eventstoredb+postgres'] as const;
export type SoakTier = (typeof SOAK_TIERS)[number];

export type Minute = {
  readonly minute: number;
  readonly fault: string;
  readonly calls: number;
  /** ms; null: no call ended. */
  readonly p99: number | null;
  /** Of the measured process, at the end of the minute; null: not measured. */
  readonly memory: Sample | null;
};

/** Lowest deciles of the first and the last third of the measured minutes, as `compared` explains. */
export type Thirds = { readonly first: number; readonly last: number; readonly ratio: number };

export type TierResult = {
  readonly tier: SoakTier;
  readonly counts: Counts;
  readonly refusals: Readonly<Record<string, number>>;
  /** Acknowledged calls that the log does not have. */
  readonly lost: number;
  /** Requests at the target beyond the recorded attempts, and payments that were charged twice. */
  readonly doubled: number;
  /** Jobs that the target was called for and the log does not have, or that were never closed. */
  readonly unrecorded: number;
  /** Answers that no caller may get, audit findings, rows that differ from a rebuild, books that differ from the chain. */
  readonly wrong: readonly string[];
  readonly refunded: number;
  readonly thirds: Readonly<
    Record<'rss' | 'heap' | 'objects' | 'abortListeners' | 'descriptors' | 'p99', Thirds>
  >;
  readonly minutes: readonly Minute[];
};

const STEP_MS = 90_000;

type Deployment = {
  readonly world: PaidWorld;
  readonly measured: Service;
  readonly services: () => readonly Service[];
  readonly restart: (() => Promise<void>) | null;
  readonly env: Environment;
  readonly recorded: () => Promise<RecordedEvent[]>;
  readonly faulty: Pick<Parameters<typeof faultsOf>[0], 'eventStore' | 'postgres'>;
  readonly end: () => Promise<void>;
};

async function deploy(tier: SoakTier, probeFile: string): Promise<Deployment> {
  const world = await makePaidWorld({ embedded: true });
  const probed = {
    BUN_OPTIONS: `--preload ${rootPath}/test/soak/probe.ts`,
    SOAK_PROBE: join(world.folder, probeFile),
    SOAK_STEP_MS: String(STEP_MS),
  };
  const common = { X402_CONFIRM_SECONDS: '5', X402_RECONCILE_SECONDS: '10' };
  if (tier === 'embedded') {
    // Killed once before the measure begins: what follows runs on a recovered log.
    const first = await world.start(common);
    await first.kill();
    const measured = await world.start({ ...common, ...probed });
    const env = { ...world.env, ...common };
    const recorded = () => recordedIn(world.dataDir);
    const faulty = { eventStore: null, postgres: null };
    return {
      world,
      measured,
      services: () => [measured],
      restart: null,
      env,
      recorded,
      faulty,
      end: () => world.end(),
    };
  }
  const cluster = await makeCluster(tier, { world, ownPostgres: true });
  const measured = await cluster.start({ ...common, ...probed });
  let second = await cluster.start(common);
  const restart = async () => {
    await second.kill();
    second = await cluster.start(common);
  };
  return {
    world,
    measured,
    services: () => [measured, second],
    restart,
    env: { ...cluster.env, ...world.env, ...cluster.env, ...common },
    recorded: () => cluster.recorded(),
    faulty: { eventStore: cluster.eventStore, postgres: cluster.postgres.power },
    end: () => cluster.end(),
  };
}

export async function soakTier(
  tier: SoakTier,
  minutes: number,
  onMinute: (minute: Minute) => void,
): Promise<TierResult> {
  const probeFile = 'probe.ndjson';
  const deployment = await deploy(tier, probeFile);
  const { world, measured, env, services } = deployment;
  try {
    const urls = () => services().map(({ url }) => url);
    const load = await startLoad(world, urls);
    if (minutes >= WARM_UP_FROM_MINUTES) await load.warmUp(WARM_UP_RECEIPTS * services().length);
    const warmAt = Date.now();
    load.begin();
    const faults = faultsOf({
      world,
      measured: () => measured,
      restart: deployment.restart,
      ...deployment.faulty,
    });
    const done: Minute[] = [];
    let refunded = 0;
    const operator = operatorOf(env, world);
    for (let minute = 1; minute <= minutes; minute++) {
      const from = Date.now();
      const fault = faults[(minute - 1) % faults.length];
      await sleep(15_000);
      await fault?.run();
      if (minute % 5 === 0) refunded += await operator.refundAll();
      await sleep(Math.max(0, from + 60_000 - Date.now()));
      const of = load.calls.filter(({ begunAt }) => begunAt >= from);
      const answered = of.filter(({ jobId }) => jobId !== null).map(({ ms }) => ms);
      const one = {
        minute,
        fault: fault?.name ?? 'none',
        calls: answered.length,
        p99: percentile(answered),
        memory: lastSample(join(world.folder, probeFile)),
      };
      done.push(one);
      onMinute(one);
    }
    await load.finish();
    const events = await closed(deployment);
    refunded += await operator.refundAll();
    const verdict = judge(world, load, events);
    const wrong = [...load.wrong, ...verdict.wrong, ...(await operator.disagreements())];
    return {
      tier,
      counts: load.counts,
      refusals: Object.fromEntries(load.refusals),
      ...verdict,
      wrong,
      refunded,
      thirds: thirdsOf(done, samplesIn(join(world.folder, probeFile)), warmAt),
      minutes: done,
    };
  } finally {
    await deployment.end();
  }
}

/** The log, once every started job is closed: recovery waits for a lease and its margin. */
async function closed({ recorded }: Deployment): Promise<RecordedEvent[]> {
  const isClosed = (events: readonly RecordedEvent[]) => {
    const of = (type: string) => events.filter((event) => event.type === type).length;
    return of('JobStarted') === of('ReceiptSigned');
  };
  let events: RecordedEvent[] = [];
  await waitFor(
    'the end of every job',
    async () => {
      events = await recorded();
      return isClosed(events);
    },
    { limitMs: 240_000, everyMs: 3000 },
  ).catch(() => undefined);
  return events;
}

function judge(world: PaidWorld, load: Load, events: readonly RecordedEvent[]) {
  const jobs = new Map<string, { sends: number; receipted: boolean }>();
  const charged = new Map<string, number>();
  for (const { type, stream, data } of events) {
    const id = String(data.jobId);
    if (type === 'JobStarted') jobs.set(id, { sends: 0, receipted: false });
    const job = jobs.get(id);
    if (type === 'AttemptMade' && data.sent !== 'no' && job !== undefined) job.sends++;
    if (type === 'ReceiptSigned' && job !== undefined) job.receipted = true;
    if (type === 'PaymentSettled') charged.set(stream, (charged.get(stream) ?? 0) + 1);
  }
  const sent = new Map<string, number>();
  const jobsOfPath = new Map<string, Set<string>>();
  for (const { headers, path } of world.target.requests) {
    const id = headers['webhook-id'] ?? 'none';
    sent.set(id, (sent.get(id) ?? 0) + 1);
    jobsOfPath.set(path, (jobsOfPath.get(path) ?? new Set()).add(id));
  }
  const acknowledged = load.calls.filter((call): call is SoakCall & { jobId: string } => call.jobId !== null);
  const count = <T>(all: Iterable<T>, some: (one: T) => boolean) => [...all].filter(some).length;
  return {
    lost: count(acknowledged, ({ jobId }) => jobs.get(jobId)?.receipted !== true),
    doubled:
      count(sent, ([id, times]) => times > (jobs.get(id)?.sends ?? 0) && jobs.has(id)) +
      count(jobsOfPath.values(), (ids) => ids.size > 1),
    unrecorded:
      count(sent.keys(), (id) => !jobs.has(id)) + count(jobs.values(), ({ receipted }) => !receipted),
    wrong:
      count(charged.values(), (times) => times > 1) > 0 ? ['a payment was settled twice in the log'] : [],
  };
}

/** More than a node's `safe` block is behind its newest. */
const FINAL_BLOCKS = 70;
const COMPLETE_TRIES = 20;

type Row = { readonly id: string; readonly payer: `0x${string}`; readonly amount: string };

/** The operator's commands on the deployment. */
function operatorOf(environment: Environment, world: PaidWorld) {
  // anvil's safe block is 32 blocks before its last.
  const env = { ...environment, X402_CONFIRMATIONS: '0' } as Record<string, string>;
  const run = (...args: string[]) => startCli(args, { env }).ended;
  const refused: string[] = [];
  return {
    /** Refunds all that is due; returns the number of payments. */
    async refundAll(): Promise<number> {
      const listed = await run('payments', '--refundable', '--json');
      const rows: readonly Row[] = listed.stdout === '' ? [] : JSON.parse(listed.stdout);
      if (rows.length === 0) return 0;
      const begun = await run('payments', 'refund', 'begin', ...rows.map(({ id }) => id), '--json');
      const due: readonly { payer: `0x${string}`; amount: string }[] = JSON.parse(begun.stdout || '[]');
      if (due.length === 0) return 0;
      const transfers = due.map(({ payer, amount }) => ({ to: payer, amount: BigInt(amount) }));
      const tx = await sendBatch(world.chain, world.payTo, transfers);
      // Exit code 2 records nothing and says "try again": an operator does, the node may be at fault in this minute.
      const complete = () => run('payments', 'refund', 'complete', '--tx', tx, '--json');
      let completed = await complete();
      for (let tries = 1; completed.code === 2 && tries < COMPLETE_TRIES; tries++) {
        await sleep(5000);
        completed = await complete();
      }
      if (completed.code !== 0) refused.push(`refund complete: ${completed.code} ${completed.stderr}`);
      return completed.code === 0 ? rows.length : 0;
    },
    /** What audit, rebuild and chain find wrong with the record. */
    async disagreements(): Promise<string[]> {
      const wrong = [...refused];
      const audit = await run('audit', '--json');
      if (audit.code !== 0) wrong.push(`audit: ${audit.code} ${audit.stdout.slice(0, 500)} ${audit.stderr}`);
      // What is in the last blocks is not final yet: they are compared once they are deep enough.
      for (let block = 0; block < FINAL_BLOCKS; block++) await world.chain.mine();
      const reconciled = await run('payments', 'reconcile', '--json');
      if (reconciled.code !== 0 && reconciled.code !== 3)
        wrong.push(`reconcile: ${reconciled.code} ${reconciled.stderr}`);
      const balance = await run('payments', '--balance', '--json');
      const [sums] = JSON.parse(balance.stdout || '[]') as readonly Record<string, unknown>[];
      if (sums?.balanced !== true) wrong.push(`balance: ${balance.stdout}`);
      const held = await world.chain.balanceOf(world.payTo);
      const expected = BigInt(String(sums?.received ?? 0)) - BigInt(String(sums?.refunded ?? 0));
      if (held !== expected) wrong.push(`the payee has ${held}, the books ${expected}`);
      if (env.DATABASE_URL !== undefined) {
        const check = await run('rebuild', '--check', '--json');
        if (check.code !== 0)
          wrong.push(`rebuild --check: ${check.code} ${check.stdout.slice(0, 500)} ${check.stderr}`);
      }
      return wrong;
    },
  };
}

const samplesIn = (file: string): Sample[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Sample)
    : [];
const lastSample = (file: string): Sample | null => samplesIn(file).at(-1) ?? null;

function percentile(values: readonly number[], share = 0.99): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
}

/** For each process: the largest of its bounded caches has room for 4,096 valid signatures, one for each receipt and checkpoint. */
const WARM_UP_RECEIPTS = 4500;
/** A shorter soak does not compare memory in earnest. */
const WARM_UP_FROM_MINUTES = 10;
/** Each kind of request and fault has been met once by then. */
const WARM_UP_MS = 6 * 60_000;

function thirdsOf(
  minutes: readonly Minute[],
  samples: readonly Sample[],
  from: number,
): TierResult['thirds'] {
  const warm = samples.filter(({ at }) => at - from > WARM_UP_MS);
  const of = (name: 'rss' | 'heap' | 'objects' | 'abortListeners' | 'descriptors') =>
    compared(warm.map((sample) => sample[name]));
  return {
    rss: of('rss'),
    heap: of('heap'),
    objects: of('objects'),
    abortListeners: of('abortListeners'),
    descriptors: of('descriptors'),
    p99: compared(minutes.flatMap(({ p99 }) => (p99 === null ? [] : [p99]))),
  };
}

/**
 * The lowest decile of each third: calls in flight hold objects, listeners and descriptors, more of them in a minute whose
 * fault lets them wait; what grows also grows where the fewest are in flight.
 */
function compared(values: readonly number[]): Thirds {
  const third = Math.max(1, Math.floor(values.length / 3));
  const decile = (some: readonly number[]) =>
    some.toSorted((one, other) => one - other)[Math.floor(some.length / 10)] ?? 0;
  const [first, last] = [decile(values.slice(0, third)), decile(values.slice(-third))];
  return { first, last, ratio: first === 0 ? 1 : last / first };
}
