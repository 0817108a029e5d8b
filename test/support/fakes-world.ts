// A process of the relay with everything around it faked: several of them may share one log and one facilitator.
import type { StartFacts } from '#src/domain/job/commands.ts';
import type { VerificationReport } from '#src/domain/receipt/verify.ts';
import { verifyReceipt } from '#src/domain/receipt/verify.ts';
import type { Target } from '#src/domain/target/url.ts';
import type { CollectDeps, Collecting } from '#src/usecases/collect-payment.ts';
import { collectPayment } from '#src/usecases/collect-payment.ts';
import { loadJob } from '#src/usecases/journal.ts';
import { findKnown } from '#src/usecases/known-job.ts';
import type { JobPlan, RunDeps } from '#src/usecases/run-job.ts';
import { runJob } from '#src/usecases/run-job.ts';
import { streamWatch } from '#src/usecases/stream-watch.ts';
import {
  collectingLogger,
  manualClock,
  presentedPayment,
  scriptedOutbound,
  scriptedPayments,
  seededEntropy,
} from './fakes.ts';
import { type FaultyLog, faultyLog } from './fakes-log.ts';
import { CLAIM_STREAM, hex, JOB_ID, jobStarted, PAYMENT_STREAM } from './given-events.ts';
import { digest, hashWith, primitives, testKey } from './primitives.ts';

export type World = ReturnType<typeof world>;

const target: Target = {
  href: 'https://target.example/hook',
  origin: 'https://target.example',
  hostname: 'target.example',
  port: 443,
  path: '/hook',
  literal: false,
};

/** `shared`: what the processes of one deployment have in common. */
export type Shared = {
  readonly log: FaultyLog;
  readonly payments: ReturnType<typeof scriptedPayments>;
  readonly key: ReturnType<typeof testKey>;
  readonly trace: string[];
};

let processes = 0;

export function shared(): Shared {
  const trace: string[] = [];
  return { trace, log: faultyLog(trace), payments: scriptedPayments(trace), key: testKey() };
}

export function world(common: Shared = shared()) {
  const owner = `owner-${++processes}`;
  const clock = manualClock();
  const outbound = scriptedOutbound(common.trace);
  const logger = collectingLogger();
  const entropy = seededEntropy(processes);
  const keyedHash = hashWith('the one secret');
  const { log, payments, key } = common;
  const deps: RunDeps & CollectDeps = {
    log,
    clock,
    entropy,
    logger,
    outbound,
    keyedHash,
    digest,
    signer: key,
    payments,
    owner,
    watch: streamWatch(clock),
  };
  return { ...common, common, owner, clock, outbound, logger, deps };
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
  const { state, events } = await loadJob(it.log, jobId);
  if (state.status !== 'completed' || state.receipt === null) throw new Error('the job has no receipt');
  const { started, completed, receipt } = state;
  const facts = {
    jws: receipt.jws,
    receiptId: receipt.receiptId,
    jobId,
    keys: [it.key.record],
    job: {
      jobId: started.jobId,
      receiptId: receipt.receiptId,
      status: completed.status,
      responseStatus: completed.responseStatus,
      method: started.method,
      attempts: completed.attempts,
      decisionId: started.decisionId,
      targetCommitment: started.commitments.target_url,
      payment: started.payment,
      events: events.filter(({ type }) => type !== 'ReceiptSigned'),
    },
  };
  return verifyReceipt(facts, primitives);
}

export type PaidCall = Partial<Omit<Collecting, 'streams' | 'reservedHere'>>;

/** Looks up, collects and goes on in rounds, as the execution does; `collected` carries the job id it was for. */
export async function collect(it: World, call: PaidCall = {}) {
  const presented = call.presented === undefined ? presentedPayment() : call.presented;
  const asked = {
    fingerprint: hex('f'),
    claimStream: CLAIM_STREAM,
    paymentStream: presented === null ? null : PAYMENT_STREAM,
    ...call,
    presented,
  };
  let reserved: string | null = null;
  for (let round = 0; round < 10; round++) {
    const known = await findKnown(it.deps, asked);
    if (known.kind === 'completed') return known;
    if (known.kind === 'refused') return { kind: 'refused', refusal: known.refusal } as const;
    const jobId = known.kind === 'resume' ? known.jobId : (call.jobId ?? JOB_ID);
    const reservedHere = known.kind === 'resume' && reserved === jobId;
    if (known.kind === 'new') reserved = jobId;
    const collected = await collectPayment(it.deps, {
      ...asked,
      jobId,
      streams: known.streams,
      reservedHere,
    });
    if (collected.kind !== 'again') return { ...collected, jobId };
  }
  throw new Error('ten rounds and no answer');
}

/** Collects, then runs the job; where another started it first, answers what is known of it. */
export async function execute(it: World, call: PaidCall = {}) {
  for (let round = 0; round < 3; round++) {
    const collected = await collect(it, call);
    if (collected.kind !== 'collected') return collected;
    const { payment, jobId } = collected;
    const ran = await runJob(it.deps, jobPlan(it, { jobId, payment, mode: 'x402' }));
    if (ran !== null) return { kind: 'ran', ran } as const;
  }
  throw new Error('three rounds and no answer');
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
