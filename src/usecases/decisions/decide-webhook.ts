// A free decision before paying: the action and the buyer's policy, judged on facts that are recorded with the decision.
import { actionHash, policyHash } from '#src/domain/decision/approval.ts';
import { type DecisionFacts, recommend, UNRESOLVED_NOW } from '#src/domain/decision/recommend.ts';
import { type BuyerPolicyRequest, normalisePolicy } from '#src/domain/decision/requests.ts';
import { isUnresolvedNow } from '#src/domain/destination/policy.ts';
import type { Mode } from '#src/domain/event-fields.ts';
import type { DecisionRecorded } from '#src/domain/events/decision.ts';
import { type EventOf, event, STREAM } from '#src/domain/events.ts';
import { makeId } from '#src/domain/ids.ts';
import { contentTypeDiffers, type WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { TIMES } from '#src/domain/limits.ts';
import {
  type CheckpointStatus,
  type TrustFacts,
  trustFacts,
  trustScore,
} from '#src/domain/monitoring/trust.ts';
import { type Allowed, Fault, isRefused, type Refused } from '#src/domain/refusal.ts';
import { iso } from '#src/lib/iso.ts';
import type { KeyedHash } from '#src/ports/signer.ts';
import { appendUntilKnown, envelope, type JournalDeps } from '#src/usecases/process/stream.ts';
import { withinDeadline } from '#src/usecases/response-deadline.ts';
import { demandWholeRecord, type RecordDeps } from '#src/usecases/transparency/whole-record.ts';
import {
  type JudgeDeps,
  judgeRequest,
  type ReadRequest,
  readRequest,
  type TargetRefused,
} from './judge-request.ts';

/** Both valid by their schemas. */
export type DecideInput = {
  readonly action: WebhookRequest;
  /** The key is the action's, or the caller sends it beside the action: then the guided call is made of the same action. */
  readonly hasKey: boolean;
  readonly buyerPolicy: BuyerPolicyRequest;
};

type Measured = MarketFacts & Pick<DecisionFacts, 'measured'>;

const UNKNOWN: Measured = { measured: false, trustScore: null, recentFailureRate: 0, recentFinishedJobs: 0 };

/** `resolver`: the one for free look-ups, which must not slow those of executions. */
export type DecideDeps = JudgeDeps &
  JournalDeps &
  RecordDeps & {
    readonly keyedHash: KeyedHash;
    /** From the read models. Throws `Fault('read_models_unavailable')` if they are unavailable. */
    market(): Promise<MarketFacts>;
    /** What a call costs and the payee; `payTo` null in demo mode. */
    readonly offer: Pick<DecisionFacts, 'price' | 'network' | 'payTo'>;
    /** Whose quota of the target is read; null if it is unknown who will pay. */
    readonly payer: string | null;
  };

/** A target that would be refused is a decision, not an error. Throws `Fault`: nothing was decided. */
export async function decideWebhook(
  deps: DecideDeps,
  { action, hasKey, buyerPolicy }: DecideInput,
): Promise<DecisionRecorded | Refused> {
  const read = readRequest(action, '/action');
  if (isRefused(read)) return read;
  await demandWholeRecord(deps, 'nothing was decided');
  const [verdict, market] = await Promise.all([
    judgeRequest(deps, read.target, deps.payer),
    marketOrUnknown(deps),
  ]);
  if (isRefused(verdict) && !isAboutTarget(verdict)) return verdict;
  const policy = normalisePolicy(buyerPolicy);
  const facts = factsOf(deps, { ...read, hasKey }, verdict, market);
  const now = deps.clock.now();
  const recorded = event('DecisionRecorded', {
    decisionId: makeId('dec', deps.entropy.bytes(16)),
    ...recommend(facts, policy),
    actionHash: actionHash(read.request, deps.keyedHash),
    policyHash: policyHash(policy),
    buyerPolicy: policy,
    facts,
    createdAt: iso(now),
    expiresAt: iso(now + TIMES.decisionValidMs),
  });
  await record(deps, recorded);
  return recorded.data;
}

/** Without read models the trust is unknown, which is recorded and warned of: the decision itself needs the log alone. */
async function marketOrUnknown({ market }: DecideDeps): Promise<Measured> {
  try {
    return { measured: true, ...(await market()) };
  } catch (error) {
    if (error instanceof Fault && error.code === 'read_models_unavailable') return UNKNOWN;
    throw error;
  }
}

/** The others concern our own capacity, or a request that has no target. */
function isAboutTarget({ refused }: TargetRefused): boolean {
  return refused !== 'too_many_in_flight' && refused !== 'invalid_request';
}

function factsOf(
  { offer }: DecideDeps,
  { request, headers, hasKey }: ReadRequest & Pick<DecideInput, 'hasKey'>,
  verdict: Allowed | TargetRefused,
  { measured, trustScore, recentFailureRate, recentFinishedJobs }: Measured,
): DecisionFacts {
  return {
    price: offer.price,
    network: offer.network,
    payTo: offer.payTo,
    trustScore,
    recentFailureRate,
    recentFinishedJobs,
    policyVerdict: policyVerdict(verdict),
    method: request.method,
    idempotencyKeyPresent: hasKey,
    strippedHeaders: headers.stripped.length,
    measured,
    contentTypeDiffers: contentTypeDiffers(request),
  };
}

function policyVerdict(verdict: Allowed | TargetRefused): string {
  if (!isRefused(verdict)) return verdict.kind;
  return isUnresolvedNow(verdict) ? UNRESOLVED_NOW : verdict.refused;
}

/** If the event log is unavailable the decision is abandoned: its id has not been returned to any caller. */
async function record(deps: DecideDeps, recorded: EventOf<'DecisionRecorded'>): Promise<void> {
  const { decisionId } = recorded.data;
  const events = envelope(deps, [recorded], decisionId);
  await withinDeadline(deps, 'nothing was decided.', (clock) =>
    appendUntilKnown({ ...deps, clock }, STREAM.decision(decisionId), 'no_stream', events),
  );
}

// ── this relay's own record: the score and the failures of the trust summary ────────────────────────

export type MarketFacts = Pick<DecisionFacts, 'trustScore' | 'recentFailureRate' | 'recentFinishedJobs'>;

export type MarketDeps = {
  /** Of the trust window that ends at `now` (Unix ms). Each throws `Fault('read_models_unavailable')`. */
  readonly rows: {
    jobs(now: number): Promise<{
      readonly stats: Pick<TrustFacts, 'recentSucceeded' | 'recentFailed'>;
      readonly failureRate: number;
    }>;
    receipts(now: number): Promise<{ readonly receipts: number; readonly verified: number }>;
  };
  readonly checkpointStanding: () => CheckpointStatus | null;
  readonly clock: { now(): number };
  readonly mode: Mode;
  readonly storage: TrustFacts['storage'];
};

/** Throws `Fault('read_models_unavailable')`. */
export async function marketFacts({
  rows,
  checkpointStanding,
  clock,
  mode,
  storage,
}: MarketDeps): Promise<MarketFacts> {
  const now = clock.now();
  const [{ stats, failureRate }, receipts] = await Promise.all([rows.jobs(now), rows.receipts(now)]);
  const facts = trustFacts({ mode, storage }, stats, receipts, checkpointStanding());
  return {
    trustScore: trustScore(facts).score,
    recentFailureRate: failureRate,
    recentFinishedJobs: stats.recentSucceeded + stats.recentFailed,
  };
}
