// Valid histories of jobs, made by the domain's own commands: one job after a plan, or many at random and interleaved.
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type { JsonObject } from '#src/domain/canonical-json.ts';
import { toHex, utf8 } from '#src/domain/encoding.ts';
import type { ErrorCategory } from '#src/domain/event-fields.ts';
import { type DomainEvent, event, type JobEvent, STREAM } from '#src/domain/events.ts';
import { makeId } from '#src/domain/ids.ts';
import {
  type AttemptFacts,
  closeInterrupted,
  completeJob,
  type Impossible,
  recordAttempt,
  startJob,
} from '#src/domain/job/commands.ts';
import { absentJob, evolveJob, type Job } from '#src/domain/job/state.ts';
import { compactJws, parseJws, receiptPayload, signingInput } from '#src/domain/receipt/payload.ts';
import type { EventLog, NewEvent, RecordedEvent } from '#src/ports/event-log.ts';
import { appendNext } from '#test/support/contract/event-log-fixtures.ts';
import type { MemoryLog } from '#test/support/log/memory-log.ts';
import { decisionRecorded, keyRetired } from './given-events.ts';

export type JobPlan = {
  /** Makes the ids; equal seeds are the same job. */
  readonly seed: number;
  readonly startedAtMs: number;
  /** HTTP status of each attempt, or null for a failure without an answer; the last decides. */
  readonly answers: readonly [number | null, ...(number | null)[]];
  /** `running`: the last attempt is under way. */
  readonly end: 'completed' | 'running' | 'interrupted_unknown' | 'not_executed';
  readonly attemptMs: number;
  readonly paid: boolean;
  /** The seed of the decision that the job names; several jobs may name one. null: none. */
  readonly decision: number | null;
  /** Whether the receipt's signature is good, in the eyes of `judgeBySignature`. */
  readonly receiptGood: boolean;
};

/** One call of `append`. */
export type PlannedAppend = { readonly stream: string; readonly events: readonly DomainEvent[] };

export const PLAN: JobPlan = {
  seed: 1,
  startedAtMs: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
  answers: [200],
  end: 'completed',
  attemptMs: 250,
  paid: false,
  decision: null,
  receiptGood: true,
};

/** The receipts of these histories are not signed: their signature's first byte says what to think of them. */
export async function judgeBySignature(receipt: { readonly jws: string }): Promise<boolean> {
  return parseJws(receipt.jws)?.signature[0] === 1;
}

export const jobIdOf = (seed: number) => makeId('job', bytesOf(`job ${seed}`));
export const receiptIdOf = (seed: number) => makeId('rcpt', bytesOf(`receipt ${seed}`));
export const decisionIdOf = (seed: number) => makeId('dec', bytesOf(`decision ${seed}`));

function bytesOf(text: string): Uint8Array {
  const bytes = new Uint8Array(16);
  let state = 2166136261;
  for (let i = 0; i < 64; i++) {
    state = Math.imul(state ^ (utf8(text)[i % text.length] ?? 0) ^ i, 16777619) >>> 0;
    bytes[i % 16] = ((bytes[i % 16] ?? 0) ^ (state >>> 13)) & 255;
  }
  return bytes;
}

const commitment = (text: string) => `${toHex(bytesOf(text))}${'A'.repeat(11)}`;
/** Of every receipt in these histories. */
export const RECEIPT_KEY_ID = commitment('key');
const hex = (text: string) => toHex(bytesOf(text)).repeat(2);
const instant = (ms: number) => new Date(ms).toISOString();

/** The appends that a job makes, in order: its start, an attempt with a retry to come, and the end in one. */
export function jobAppends(plan: JobPlan): readonly PlannedAppend[] {
  const stream = STREAM.job(jobIdOf(plan.seed));
  let job: Job = absentJob;
  let nowMs = plan.startedAtMs;
  const appends: PlannedAppend[] = [];
  const add = (...events: readonly JobEvent[]) => {
    for (const event of events) job = evolveJob(job, event);
    appends.push({ stream, events });
  };
  add(...startJob(startFacts(plan)));
  for (const [index, status] of plan.answers.entries()) {
    const last = index === plan.answers.length - 1;
    if (last && plan.end === 'running') return appends;
    if (last && plan.end !== 'completed' && plan.end !== 'running') {
      const closing = accepted(closeInterrupted(plan.end, instant(nowMs + plan.attemptMs), job));
      add(...closing, ...receiptFor(plan, job, closing));
      return appends;
    }
    const attempt = accepted(recordAttempt(attemptFacts(plan, index, status, nowMs), job));
    nowMs += plan.attemptMs;
    if (!last) add(...attempt);
    else {
      const tried = attempt.reduce<Job>(evolveJob, job);
      const response = {
        responseBytes: status === null ? null : 12,
        truncated: false,
        responseCommitment: status === null ? null : commitment(`response ${plan.seed}`),
      };
      const closing = [...attempt, ...accepted(completeJob(response, instant(nowMs), tried))];
      add(...closing, ...receiptFor(plan, job, closing));
    }
  }
  return appends;
}

export const RECOMMENDATIONS = ['pay_and_execute', 'manual_review', 'do_not_pay'] as const;

/** What readers are shown of decision 0, and of every third one. */
export const PAY_AND_EXECUTE = {
  recommendation: 'pay_and_execute',
  confidence: 'high',
  blockingIssues: [],
  warnings: [],
  reasons: [{ code: 'because_pay_and_execute', message: 'So it is.' }],
  facts: {
    price: '$0.003',
    network: 'eip155:8453',
    payTo: '0x1111111111111111111111111111111111111111',
    trustScore: 93.5,
    recentFailureRate: 0.25,
    policyVerdict: 'allowed',
  },
};

/** The one append that a decision makes. */
export function decisionAppend(seed: number, createdAtMs = PLAN.startedAtMs): PlannedAppend {
  const sample = decisionRecorded().data;
  const recommendation = RECOMMENDATIONS[seed % 3] ?? 'pay_and_execute';
  const reason = { code: `because_${recommendation}`, message: 'So it is.' };
  const recorded = event('DecisionRecorded', {
    decisionId: decisionIdOf(seed),
    recommendation,
    confidence: recommendation === 'manual_review' ? 'medium' : 'high',
    blockingIssues: recommendation === 'do_not_pay' ? [reason] : [],
    warnings: recommendation === 'manual_review' ? [reason] : [],
    reasons: [reason],
    actionHash: hex(`action ${seed}`),
    policyHash: hex(`policy ${seed}`),
    buyerPolicy: { ...sample.buyerPolicy, maxPriceUsd: '0.5' },
    facts: {
      ...sample.facts,
      price: '$0.003',
      trustScore: 93.5,
      recentFailureRate: 0.25,
      strippedHeaders: 1,
    },
    createdAt: instant(createdAtMs),
    expiresAt: instant(createdAtMs + 86_400_000),
  });
  return { stream: STREAM.decision(recorded.data.decisionId), events: [recorded] };
}

function accepted<E>(outcome: { readonly kind: 'events'; readonly events: E } | Impossible): E {
  if (outcome.kind === 'impossible') throw new Error(`the plan is not valid: ${outcome.why}`);
  return outcome.events;
}

function startFacts(plan: JobPlan): Parameters<typeof startJob>[0] {
  const { seed } = plan;
  return {
    jobId: jobIdOf(seed),
    schedule: null,
    mode: plan.paid ? 'x402' : 'demo',
    route: plan.decision !== null ? 'execute/guided-webhook' : 'execute/webhook',
    method: (['POST', 'PUT', 'PATCH', 'DELETE'] as const)[seed % 4] ?? 'POST',
    fingerprint: hex(`fingerprint ${seed}`),
    payment: plan.paid
      ? {
          scheme: 'exact',
          network: 'eip155:8453',
          asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
          amount: '3000',
          payTo: '0x1111111111111111111111111111111111111111',
          payer: '0x2222222222222222222222222222222222222222',
          transaction: `0x${hex(`transaction ${seed}`)}`,
          payloadHash: hex(`payload ${seed}`),
        }
      : null,
    paymentStream: plan.paid ? STREAM.payment(hex(`payment ${seed}`)) : null,
    claimStream: null,
    decisionId: plan.decision === null ? null : decisionIdOf(plan.decision),
    decisionHash: plan.decision === null ? null : hex(`decision ${plan.decision}`),
    attemptsAllowed: plan.answers.length,
    backoffMs: 250,
    timeoutMs: 12_000,
    owner: `owner-${seed % 3}`,
    commitments: {
      target_url: commitment(`url ${seed}`),
      target_origin: commitment(`origin ${seed}`),
      header_names: commitment(`headers ${seed}`),
      request_body_sha256: commitment(`body ${seed}`),
      idempotency_key: null,
    },
    startedAt: instant(plan.startedAtMs),
  };
}

function attemptFacts(plan: JobPlan, index: number, status: number | null, nowMs: number): AttemptFacts {
  const willRetry = index < plan.answers.length - 1;
  return {
    number: index + 1,
    startedAt: instant(nowMs),
    endedAt: instant(nowMs + plan.attemptMs),
    phase: status === null ? 'connect' : 'body',
    sent: status === null ? 'no' : 'yes',
    status,
    errorCategory: categoryOf(status),
    reason: categoryOf(status) && (status === null ? 'connection_refused' : 'http_status'),
    timings: { dnsMs: 1.5, connectMs: 2, tlsMs: null, ttfbMs: null, totalMs: plan.attemptMs },
    tlsVersion: status === null ? null : 'TLSv1.3',
    exempted: false,
    leafCommitment: status === null ? null : commitment(`leaf ${plan.seed} ${index}`),
    addressCommitment: commitment(`address ${plan.seed} ${index}`),
    retryAfterMs: null,
    willRetry,
    waitMs: willRetry ? 250 : null,
  };
}

function categoryOf(status: number | null): ErrorCategory | null {
  if (status === null) return 'connect_error';
  if (status < 300) return null;
  if (status < 400) return 'target_redirect';
  return status < 500 ? 'target_client_error' : 'target_server_error';
}

function receiptFor(plan: JobPlan, before: Job, closing: readonly JobEvent[]): readonly JobEvent[] {
  const job = closing.reduce<Job>(evolveJob, before);
  if (job.status !== 'completed') throw new Error('only a completed job has a receipt');
  const { jobId, decisionId } = job.started;
  const signedAt = job.completed.completedAt;
  const payload = receiptPayload(job, {
    receiptId: receiptIdOf(plan.seed),
    iat: Math.floor(Date.parse(signedAt) / 1000),
    stream: {
      id: STREAM.job(jobId),
      revision: String(job.attempts.length + 1),
      chain: commitment(`chain ${plan.seed}`),
    },
    log: null,
  });
  const signature = new Uint8Array(64).fill(plan.receiptGood ? 1 : 0);
  const jws = compactJws(signingInput(payload, RECEIPT_KEY_ID), signature);
  const { receiptId } = payload;
  return [event('ReceiptSigned', { jobId, decisionId, receiptId, keyId: RECEIPT_KEY_ID, jws, signedAt })];
}

/** Appends in order; each as a call of its own, with ids of its own. */
export async function appendAll(
  log: Pick<EventLog, 'append' | 'readStream'>,
  appends: readonly PlannedAppend[],
): Promise<string | null> {
  let position: string | null = null;
  for (const { stream, events } of appends) {
    position = (await appendNext(log, stream, events.map(newEvent))).position;
  }
  return position;
}

export function newEvent({ type, data }: { readonly type: string; readonly data: object }): NewEvent {
  return { id: randomUUID(), type, data: data as JsonObject, metadata: {} };
}

/** The recorded events of a log, as a subscriber without an end would see them. */
export function recorded(log: MemoryLog): readonly RecordedEvent[] {
  return [...log.events];
}

const answer = fc.constantFrom<number | null>(200, 201, 302, 404, 429, 500, null);

/** A plan at random; seeds are given by `histories`. */
export const jobPlan: fc.Arbitrary<Omit<JobPlan, 'seed'>> = fc.record({
  startedAtMs: fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2026, 0, 1) + 600_000 }),
  answers: fc
    .array(answer, { minLength: 1, maxLength: 3 })
    .map((answers) => answers as unknown as JobPlan['answers']),
  end: fc.constantFrom<JobPlan['end']>(
    'completed',
    'completed',
    'running',
    'interrupted_unknown',
    'not_executed',
  ),
  attemptMs: fc.integer({ min: 0, max: 90_000 }),
  paid: fc.boolean(),
  decision: fc.option(fc.nat({ max: 4 })),
  receiptGood: fc.boolean(),
});

/**
 * Many jobs and decisions at once: each in its order, all of them interleaved, with events between that no read model
 * knows. Several jobs name one decision, and some one that is recorded late or never. The signing key is compromised.
 */
export const histories: fc.Arbitrary<readonly PlannedAppend[]> = fc
  .tuple(
    fc.array(jobPlan, { maxLength: 12 }),
    fc.uniqueArray(fc.nat({ max: 4 })),
    fc.array(fc.nat(), { maxLength: 64 }),
  )
  .map(([plans, decisions, picks]) => {
    const waiting = plans.map((plan, seed) => [...jobAppends({ ...plan, seed })]);
    waiting.unshift(...decisions.map((seed) => [decisionAppend(seed)]));
    waiting.push([...noise], [...compromises]);
    const order: PlannedAppend[] = [];
    for (let turn = 0; ; turn++) {
      const open = waiting.filter((appends) => appends.length > 0);
      const next = open[(picks[turn % picks.length] ?? 0) % (open.length || 1)]?.shift();
      if (next === undefined) return order;
      order.push(next);
    }
  });

/** Of the receipts' signing key, in the middle of their time; reported again with another date. */
const compromises: readonly PlannedAppend[] = [300_000, 240_000, 360_000].map((ms) => ({
  stream: STREAM.keys,
  events: [
    keyRetired({
      keyId: RECEIPT_KEY_ID,
      reason: 'compromised',
      compromisedAt: instant(Date.UTC(2026, 0, 1) + ms),
    }),
  ],
}));

/** A type without a version, a version that no release has, missing fields: passed over by every read model. */
const noise: readonly PlannedAppend[] = [
  { type: 'SomethingElse', data: { jobId: jobIdOf(0) } },
  { type: 'JobStarted', data: { v: 0, jobId: jobIdOf(0) } },
  { type: 'JobCompleted', data: { v: 1 } },
  { type: 'ReceiptSigned', data: {} },
].map((event) => ({ stream: 'job-noise', events: [event as unknown as DomainEvent] }));
