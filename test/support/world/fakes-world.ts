// A process of the relay with everything around it faked: several of them may share one log and one facilitator.

import { describeAddress } from '#src/adapters/outbound/addresses.ts';
import type { TargetRules } from '#src/domain/destination/policy.ts';
import type { Target } from '#src/domain/destination/url.ts';
import type { StartFacts } from '#src/domain/job/commands.ts';
import { placesOf } from '#src/domain/places.ts';
import type { VerificationReport } from '#src/domain/receipt/report.ts';
import { verifySignedReceipt } from '#src/domain/receipt/verify.ts';
import { WrongExpectedVersion } from '#src/ports/event-log.ts';
import type { OutboundRequest } from '#src/ports/outbound.ts';
import type { ExecuteDeps } from '#src/usecases/execution/execute-webhook.ts';
import { claimTurns, guessLimit, unconfirmedPayments } from '#src/usecases/execution/process-limits.ts';
import { announceJob, attempt, type Ran, type RunDeps } from '#src/usecases/execution/run-job.ts';
import { UnchargedLimit } from '#src/usecases/execution/uncharged-limit.ts';
import { VerifyLimit } from '#src/usecases/execution/verify-limit.ts';
import { JOB, load } from '#src/usecases/process/stream.ts';
import { streamWatch } from '#src/usecases/process/watch.ts';
import { MemoryChain } from '#test/support/chain/memory-chain.ts';
import { type MemoryPayments, memoryPayments } from '#test/support/chain/memory-payments.ts';
import { JOB_ID, jobStarted, T0 } from '#test/support/given/given-events.ts';
import { factsOfJob } from '#test/support/given/given-receipt.ts';
import { hashWith, primitives, signerOf, testKey } from '#test/support/given/primitives.ts';
import { type FaultyLog, faultyLog } from '#test/support/log/fakes-log.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import { Random } from '#test/support/world/random.ts';
import { collectingLogger, manualClock, scriptedOutbound, type Trace } from './fakes.ts';
import { scriptedQuota, scriptedResolver, tracedSlots } from './fakes-admission.ts';

export type World = ReturnType<typeof world>;

/** All processes of a deployment hash with one secret. */
export const keyedHash = hashWith('the one secret');

const target: Target = {
  href: 'https://target.example/hook',
  origin: 'https://target.example',
  hostname: 'target.example',
  port: 443,
  path: '/hook',
  literal: false,
  plain: true,
};

/** Open to every public host; ourselves at relay.example. */
export const targetRules: TargetRules = {
  mode: 'open-public-https',
  blockHosts: [],
  allowHosts: [],
  url: { ports: null, own: { hostname: 'relay.example', canary: 'https://relay.example/api/canary/echo' } },
  addresses: { allow: [], deny: [], own: [], nat64: null },
};

/** `shared`: what the processes of one deployment have in common. */
export type Shared = {
  readonly log: FaultyLog;
  readonly payments: MemoryPayments;
  readonly key: ReturnType<typeof testKey>;
  /** Appends, settlements, look-ups on chain and calls to the target, in order. */
  readonly trace: readonly string[];
  /** The same with all that was asked before: slots, time window, DNS, quota, verify. */
  readonly steps: string[];
  readonly both: Trace;
};

let processes = 0;

/** `together`: its log stores appends together, as the embedded one. */
export function shared({ together = false } = {}): Shared {
  const trace: string[] = [];
  const steps: string[] = [];
  const both: Trace = {
    push(step) {
      trace.push(step);
      steps.push(step);
    },
  };
  const payments = memoryPayments(new MemoryChain({ startMs: T0, now: () => 0 }), {
    asked(call) {
      if (call === 'settle' || call === 'lookUp') both.push(call);
      else steps.push(call === 'judge' ? 'payment' : call);
    },
  });
  return { trace, steps, both, log: faultyLog(both, memoryLog(), { together }), payments, key: testKey() };
}

/** Looks at the chain once after a settle call. `changes`: what this process is configured with otherwise. */
export function world(common: Shared = shared(), changes: Partial<ExecuteDeps> = {}) {
  const owner = `owner-${++processes}`;
  const { log, payments, key, steps, both } = common;
  const clock = manualClock();
  const outbound = scriptedOutbound(both);
  const logger = collectingLogger();
  const resolver = scriptedResolver(steps);
  const quota = scriptedQuota(steps);
  const slots = tracedSlots(100, steps);
  const deps: ExecuteDeps = {
    log,
    clock,
    entropy: new Random(processes),
    logger,
    outbound,
    keyedHash,
    signer: signerOf(key),
    agentSigner: null,
    receiptLog: () => null,
    payments,
    owner,
    exclusive: false,
    watch: streamWatch(clock),
    foundRunning: () => undefined,
    recordIsWhole: async () => true,
    unconfirmed: unconfirmedPayments(),
    uncharged: new UnchargedLimit({ log, clock, quota: changes.quota ?? quota }),
    guesses: guessLimit(clock),
    confirmWaitMs: 0,
    takeTurn: claimTurns(clock),
    verifies: new VerifyLimit(clock, placesOf(512, { hasSchedules: true })),
    rules: targetRules,
    describeAddress,
    resolver,
    quota,
    targetQuotaPerMinute: 20,
    slots,
    pseudonym: 'relay.example',
    baseUrl: 'https://relay.example',
    ...changes,
  };
  const { unconfirmed } = deps;
  return { ...common, common, owner, clock, outbound, logger, resolver, quota, slots, unconfirmed, deps };
}

export type JobPlan = {
  readonly facts: Omit<StartFacts, 'startedAt'>;
  readonly request: () => Promise<OutboundRequest>;
};

/** A job's steps in a row, as the paid execution takes them. null: another process started it. */
export async function runJob(deps: RunDeps, { facts, request }: JobPlan): Promise<Ran | null> {
  try {
    let job = await announceJob(deps, facts);
    while (job.kind === 'running') job = await attempt(deps, job, request);
    return job;
  } catch (error) {
    if (error instanceof WrongExpectedVersion) return null;
    throw error;
  }
}

export function jobPlan(it: World, changes: Partial<StartFacts> = {}): JobPlan {
  const {
    v: _,
    leaseMs: __,
    startedAt: ___,
    ...facts
  } = jobStarted({ owner: it.owner, attemptsAllowed: 1 }).data;
  const request = { target, method: 'POST', headers: [], body: null, timeoutMs: 12_000 };
  return { facts: { ...facts, ...changes }, request: async () => request };
}

/** The job's stream, verified as an auditor would. */
export async function audited(it: Pick<World, 'log' | 'key'>, jobId = JOB_ID): Promise<VerificationReport> {
  const { state, events } = await load(it, JOB, jobId);
  if (state.status !== 'completed' || state.receipt === null) throw new Error('the job has no receipt');
  const { jws, receiptId } = state.receipt;
  const chained = events.filter(({ type }) => type !== 'ReceiptSigned');
  const job = factsOfJob(state, chained);
  return verifySignedReceipt({ jws, receiptId, jobId, keys: [it.key.record], job, log: null }, primitives);
}

export async function given(
  it: Pick<World, 'log'>,
  stream: string,
  ...events: readonly { readonly type: string; readonly data: object }[]
) {
  const past = await it.log.readStream(stream);
  const expected = past.at(-1)?.revision ?? 'no_stream';
  const stored = events.map((event) => ({
    id: crypto.randomUUID(),
    metadata: {},
    ...JSON.parse(JSON.stringify(event)),
  }));
  await it.log.append(stream, expected, stored);
}

/** Types in a stream, in order. */
export async function typesIn(it: Pick<World, 'log'>, stream: string): Promise<string[]> {
  return (await it.log.readStream(stream)).map(({ type }) => type);
}
