// The HTTP room with a world behind it that answers as scripted: use cases and read models are fakes, the room is real.

import type { DecisionRecord } from '#projections/decision/query.ts';
import type { JobRecord } from '#projections/job/query.ts';
import type { ExecutionStats } from '#projections/monitoring/query.ts';
import type { FailureRecord, ProofRecord } from '#projections/proof/query.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { PRICE } from '#src/domain/limits.ts';
import { healthReport } from '#src/domain/monitoring/health.ts';
import type { VerificationReport } from '#src/domain/receipt/report.ts';
import { ALLOWED, refused } from '#src/domain/refusal.ts';
import { type App, type AppDeps, createApp } from '#src/http/app.ts';
import type { HttpSettings, ProjectionProgress, Reads, ReceiptFound } from '#src/http/deps.ts';
import type { Quota } from '#src/ports/quota.ts';
import type { PolicyCheck } from '#src/usecases/decisions/check-policy.ts';
import type { Guided, GuidedInput } from '#src/usecases/execution/execute-guided-webhook.ts';
import type { ExecuteInput, Execution } from '#src/usecases/execution/execution-call.ts';
import type { Handoff, SchedulePreview } from '#src/usecases/planning/free-plans.ts';
import { presentedPayment } from '#test/support/chain/fakes-payments.ts';
import { ALL_WELL } from '#test/support/given/all-well.ts';
import { at, commitment, decisionRecorded } from '#test/support/given/given-events.ts';
import { payloadOf } from '#test/support/given/given-receipt.ts';
import { Random } from '#test/support/world/random.ts';
import { type CollectingLogger, collectingLogger } from './fakes.ts';
import { noTransparency } from './no-transparency.ts';

export const JOB = 'job_0000000000000000000000000a';
export const RECEIPT = 'rcpt_0000000000000000000000000a';
export const DECISION = 'dec_0000000000000000000000000d';
export const HANDOFF = 'hnd_0000000000000000000000000a';
export const BASE = 'https://relay.example';
export const JWS = 'eyJhbGciOiJFZERTQSJ9.e30.c2lnbmF0dXJl';
const timings = { dnsMs: 1, connectMs: null, tlsMs: 3, ttfbMs: 4, totalMs: 10.5 };

export const execution = (changes: Partial<Execution> = {}): Execution => ({
  mode: 'demo',
  replay: false,
  job: {
    id: JOB,
    status: 'succeeded',
    attempts: 1,
    decisionId: null,
    responseStatus: 200,
    errorCategory: null,
    reason: null,
    createdAt: at(0),
    completedAt: at(20),
  },
  receipt: { id: RECEIPT, keyId: 'key-1', jws: JWS },
  payment: null,
  response: null,
  disclosures: ['WyJzYWx0IiwidGFyZ2V0X3VybCIsImh0dHBzOi8vYS5leGFtcGxlLyJd'],
  ...changes,
});

/** What the sample payment of fakes-payments.ts bought. */
export const paidExecution = (changes: Partial<Execution> = {}): Execution => {
  const { scheme, network, asset, amount, payTo, payer, payloadHash } = presentedPayment();
  const payment = { scheme, network, asset, amount, payTo, payer, transaction: '0xabc', payloadHash };
  return execution({ mode: 'x402', payment, ...changes });
};

export const decided = () => decisionRecorded().data;

/** Executed by the sample job. */
export const decisionRecord = (changes: Partial<DecisionRecord> = {}): DecisionRecord => ({
  ...decisionRecorded().data,
  outcome: {
    status: 'succeeded',
    jobId: JOB,
    receiptId: RECEIPT,
    receiptVerified: true,
    responseStatus: 200,
    errorCategory: null,
    attempts: 1,
  },
  ...changes,
});

export const guided = (changes: Partial<Execution> = {}): Guided => {
  const { decisionId, recommendation, confidence } = decided();
  const approved = { ...execution().job, decisionId };
  return {
    execution: execution({ job: approved, ...changes }),
    decision: { decisionId, recommendation, confidence },
  };
};

export const job = (changes: Partial<JobRecord> = {}): JobRecord => ({
  id: JOB,
  type: 'webhook',
  status: 'succeeded',
  method: 'POST',
  mode: 'demo',
  attempts: 1,
  attemptLog: [
    {
      number: 1,
      startedAt: at(0),
      completedAt: at(20),
      phase: 'body',
      sent: 'yes',
      status: 200,
      errorCategory: null,
      reason: null,
      timings,
    },
  ],
  target: { scheme: 'https', commitment: commitment('U') },
  requestHash: commitment('B'),
  responseStatus: 200,
  responseOk: true,
  responseHash: commitment('R'),
  errorCategory: null,
  decisionId: null,
  receiptId: RECEIPT,
  refund: null,
  createdAt: at(0),
  updatedAt: at(20),
  ...changes,
});

export const running = () =>
  job({
    status: 'running',
    attempts: 0,
    attemptLog: [],
    responseStatus: null,
    responseOk: false,
    responseHash: null,
    receiptId: null,
  });

export async function receipt(changes: Partial<ReceiptFound> = {}): Promise<ReceiptFound> {
  return {
    id: RECEIPT,
    jobId: JOB,
    decisionId: null,
    keyId: 'key-1',
    payload: await payloadOf(),
    jws: JWS,
    signature: 'ed25519:c2lnbmF0dXJl',
    verified: true,
    signedAt: at(20),
    checkpoint: null,
    ...changes,
  };
}

export const report = (changes: Partial<VerificationReport> = {}): VerificationReport => ({
  ok: true,
  receiptId: RECEIPT,
  jobId: JOB,
  keyId: 'key-1',
  signatureVerified: true,
  checks: [
    { name: 'receipt_present', ok: true, details: { expected: RECEIPT, receipt: RECEIPT } },
    { name: 'signature_valid', ok: true },
  ],
  ...changes,
});

export const proofRecord = (changes: Partial<ProofRecord> = {}): ProofRecord => ({
  jobId: JOB,
  receiptId: RECEIPT,
  status: 'failed',
  method: 'POST',
  attempts: 3,
  responseStatus: null,
  responseOk: false,
  receiptVerified: true,
  errorCategory: 'timeout',
  createdAt: at(0),
  updatedAt: at(20),
  publicFieldsOnly: true,
  ...changes,
});

export const policyCheck = (changes: Partial<PolicyCheck> = {}): PolicyCheck => ({
  verdict: ALLOWED,
  target: { protocol: 'https:', hostname: 'a.example', port: 443 },
  normalized: {
    method: 'POST',
    retry: { attempts: 1, backoffMs: 250 },
    timeoutMs: 12_000,
    idempotencyKeyPresent: false,
    forwardedHeaders: ['x-own'],
    strippedHeaders: ['via'],
    bodyPresent: true,
  },
  warnings: [{ code: 'headers_stripped', message: 'Some headers will not be forwarded.' }],
  ...changes,
});

export const handoff = (changes: Partial<Handoff> = {}): Handoff => ({
  verdict: {
    ...ALLOWED,
    handoff: {
      id: HANDOFF,
      status: 'ready_for_external_browser_agent',
      executionModel: 'handoff-only',
      paid: false,
      createdAt: at(0),
      expiresAt: at(3_600_000),
      target: {
        url: 'https://a.example/shop?q#top',
        origin: 'https://a.example',
        hostname: 'a.example',
        pathname: '/shop',
      },
      actions: [{ step: 1, type: 'click', selector: '#buy', description: 'Buy it' }],
      returnUrl: null,
      idempotencyKey: null,
    },
  },
  warnings: [{ code: 'idempotency_key_missing', message: 'A repeat looks like a new task.' }],
  ...changes,
});

export const schedulePreview = (changes: Partial<SchedulePreview> = {}): SchedulePreview => ({
  schedule: { type: 'once', runAt: '2999-12-31T01:00:00+01:00' },
  nextRuns: ['2999-12-31T00:00:00.000Z'],
  webhook: policyCheck(),
  warnings: policyCheck().warnings,
  ...changes,
});

export const stats = {
  total: 9,
  succeeded: 6,
  failed: 2,
  running: 1,
  recentTotal: 5,
  recentSucceeded: 3,
  recentFailed: 1,
  recentRunning: 1,
  lastUpdatedAt: at(20),
};

type Monitoring = Reads['monitoring'];

/** These finished jobs in the last bucket, by default those of `stats`, and no duration known. */
export const noDurations =
  (finished = { succeeded: stats.recentSucceeded, failed: stats.recentFailed }): Monitoring['series'] =>
  async (starts) =>
    starts.map((start, at) => ({
      start,
      ...(at === starts.length - 1 ? finished : { succeeded: 0, failed: 0 }),
      durations: [],
    }));

/** As the queries of the rows answer it. */
export const monitoringOf = (
  shown: ExecutionStats = stats,
  { overdue = 0, failureRate = 0.25 } = {},
): Monitoring => ({
  summary: async () => ({ stats: shown, failureRate, overdue }),
  totals: async () => {
    const { total, succeeded, failed, running, lastUpdatedAt } = shown;
    return { total, succeeded, failed, running, lastUpdatedAt, overdue };
  },
  series: noDurations({ succeeded: shown.recentSucceeded, failed: shown.recentFailed }),
});

export const failureRecord = (changes: Partial<FailureRecord> = {}): FailureRecord => ({
  ...proofRecord(),
  completedAt: '9999',
  ...changes,
});

/** Counts without end; `limit` changes that. */
export function countingQuota(limit = Number.MAX_SAFE_INTEGER) {
  const taken = new Map<string, number>();
  const state = (count: number) => ({
    allowed: count <= limit,
    limit,
    remaining: limit - count,
    resetMs: 30_500,
  });
  const quota: Quota = {
    async take(rule, key) {
      const name = `${rule.name} ${key}`;
      taken.set(name, (taken.get(name) ?? 0) + 1);
      return state(taken.get(name) ?? 0);
    },
    look: async (rule, key) => state((taken.get(`${rule.name} ${key}`) ?? 0) + 1),
  };
  return { ...quota, taken };
}

const settings: HttpSettings = {
  baseUrl: BASE,
  mode: 'demo',
  storage: { driver: 'sqlite+pglite', durable: true },
  offer: { scheme: PRICE.scheme, network: PRICE.network, price: PRICE.display },
  policyMode: 'open-public-https',
  targetQuota: null,
  rateLimitPerMinute: 60,
  readsPerMinute: 1_000_000,
  maxInFlight: 512,
  returnsResponses: true,
  returnedHeaders: ['content-type', 'retry-after'],
  retentionDays: { jobs: 7, receipts: 30 },
  witnesses: null,
  trustsProxy: () => false,
  egressExemption: false,
  metricsPublic: false,
};

type AllDeps = AppDeps['request'] &
  AppDeps['execute'] &
  AppDeps['decisions'] &
  AppDeps['reads'] &
  AppDeps['log'] &
  AppDeps['health'];

/** What all groups of routes are given, as one. */
export type HttpWorld = Omit<AllDeps, 'settings' | 'reads' | 'progress'> & {
  readonly settings: HttpSettings;
  readonly reads: Reads;
  readonly progress: ProjectionProgress;
  readonly schedules?: AppDeps['schedules'];
};

export const appOf = (world: HttpWorld): App =>
  createApp({
    request: world,
    execute: world,
    decisions: world,
    reads: world,
    log: world,
    health: world,
    ...(world.schedules && { schedules: world.schedules }),
  });

export type FakeWorld = HttpWorld & {
  readonly executed: readonly ExecuteInput[];
  readonly executedGuided: readonly GuidedInput[];
  readonly log: CollectingLogger;
};

/** No one looks. */
const unseen: HttpWorld['operators'] = {
  figures: { requestBegun: () => () => undefined },
  tracer: null,
  detail: { debug: () => undefined },
  exposition: async () => ({ contentType: 'text/plain; version=0.0.4; charset=utf-8', text: 'up 1\n' }),
};

type Changes = Omit<Partial<HttpWorld>, 'settings' | 'reads' | 'progress'> & {
  readonly settings?: Partial<HttpSettings>;
  readonly reads?: Partial<Reads>;
  readonly progress?: Partial<ProjectionProgress>;
};

/** One job with its receipt, one proof, and everything in order. */
export function fakeWorld(changes: Changes = {}): FakeWorld {
  const executed: ExecuteInput[] = [];
  const executedGuided: GuidedInput[] = [];
  const log = collectingLogger();
  const { execute = async () => execution(), executeGuided = async () => guided(), ...rest } = changes;
  return {
    executed,
    executedGuided,
    log,
    decide: async () => decided(),
    checkPolicy: async () => policyCheck(),
    handOffBrowser: async () => handoff(),
    previewSchedule: async () => schedulePreview(),
    verifyJob: async (id) => (id === JOB ? report() : refused('job_not_found', 'no such job')),
    verifyReceipt: async (id) =>
      id === RECEIPT ? report() : refused('receipt_not_found', 'no such receipt'),
    jwks: async () => ({ keys: [] }),
    agentKeys: () => [],
    transparency: noTransparency,
    checkpointStanding: () => null,
    wrong: () => [],
    witnesses: () => null,
    executionsInFlight: () => 0,
    verifyScript: '// the verifier',
    amountText: async ({ amount }) => `${amount} units`,
    library: { text: (name) => `// ${name}`, archive: () => Uint8Array.of(31, 139) },
    health: async () => healthReport(ALL_WELL),
    payments: null,
    quota: countingQuota(),
    clock: systemClock(),
    entropy: new Random(),
    logger: log,
    operators: unseen,
    clientKey: (address) => `key of ${address}`,
    ...rest,
    execute(input) {
      executed.push(input);
      return execute(input);
    },
    executeGuided(input) {
      executedGuided.push(input);
      return executeGuided(input);
    },
    reads: { ...reads, ...changes.reads },
    progress: {
      caughtUp: async () => true,
      reachedHead: async () => true,
      lag: () => ({ lagEvents: 0, lagMs: 0 }),
      position: () => null,
      ...changes.progress,
    },
    settings: { ...settings, ...changes.settings },
  };
}

const reads: Reads = {
  job: { find: async (id) => (id === JOB ? job() : null) },
  receipt: { find: async (id) => (id === RECEIPT ? await receipt() : null), countUnverified: async () => 0 },
  proof: { recent: async () => [proofRecord()], recentFailures: async () => [failureRecord()] },
  monitoring: monitoringOf(),
  trust: {
    receipts: async () => ({ receipts: 8, verified: 8, recentVerified: 4, latestVerifiedAt: at(20) }),
    payments: async () => ({ charged: 9, served: 6, refunded: 2, open: 1 }),
  },
  decision: {
    find: async (id) => (id === DECISION ? decisionRecord() : null),
    recent: async () => [decisionRecord()],
  },
  store: { counts: async () => ({ jobs: 9, receipts: 8 }) },
};
