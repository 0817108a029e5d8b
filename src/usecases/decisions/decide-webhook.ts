// A free decision before paying: the action and the buyer's policy, judged on facts that are recorded with it.
import { normalisePolicy } from '#src/domain/decision/buyer-policy.ts';
import type { DecisionRecorded } from '#src/domain/decision/events.ts';
import { actionHash, policyHash } from '#src/domain/decision/hashes.ts';
import { type DecisionFacts, recommend } from '#src/domain/decision/recommend.ts';
import { STREAM } from '#src/domain/events.ts';
import { makeId } from '#src/domain/ids.ts';
import { TIMES } from '#src/domain/limits.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import type { KeyedHash } from '#src/ports/signer.ts';
import { appendUntilKnown, envelope, type JournalDeps } from '#src/usecases/event-streams.ts';
import { withinPatience } from '#src/usecases/with-timeout.ts';
import type { Decided, DecideInput } from './decided.ts';
import {
  type JudgeDeps,
  judgeRequest,
  type ReadRequest,
  readRequest,
  type TargetRefused,
} from './judge-request.ts';

/** How this service has done of late. */
export type MarketFacts = Pick<DecisionFacts, 'trustScore' | 'recentFailureRate' | 'recentFinishedJobs'>;

/** `resolver`: the one for free look-ups, which must not keep executions from theirs. */
export type DecideDeps = JudgeDeps &
  JournalDeps & {
    readonly keyedHash: KeyedHash;
    /** From the read models. Throws `Fault('read_models_unavailable')` where they are away. */
    market(): Promise<MarketFacts>;
    /** What a call costs and to whom; `payTo` null where nobody is paid (demo mode). */
    readonly offer: Pick<DecisionFacts, 'price' | 'network' | 'payTo'>;
    /** Whose quota of the target is looked at; null where it is not known who will pay. */
    readonly payer: string | null;
  };

/**
 * A target that would be refused is a decision, not an error. A refusal: the action is malformed, or all free look-ups
 * are taken. Throws `Fault`: nothing was decided.
 */
export async function decideWebhook(
  deps: DecideDeps,
  { action, buyerPolicy }: DecideInput,
): Promise<Decided | Refused> {
  const read = readRequest(deps, action, '/action');
  if (isRefused(read)) return read;
  const [verdict, market] = await Promise.all([judgeRequest(deps, read.target, deps.payer), deps.market()]);
  if (verdict !== null && !isAboutTarget(verdict)) return verdict;
  const policy = normalisePolicy(buyerPolicy);
  const facts = factsOf(deps, read, verdict, market);
  const now = deps.clock.now();
  const decision: DecisionRecorded = {
    v: 2,
    decisionId: makeId('dec', deps.entropy.bytes(16)),
    ...recommend(facts, policy),
    actionHash: actionHash(read.request, deps.keyedHash),
    policyHash: policyHash(policy),
    buyerPolicy: policy,
    facts,
    createdAt: new Date(now).toISOString(),
    expiresAt: new Date(now + TIMES.decisionValidMs).toISOString(),
  };
  return { decision, position: await record(deps, decision) };
}

/** The others are about our own means, or about a request that has no target. */
function isAboutTarget({ refused }: TargetRefused): boolean {
  return refused !== 'too_many_in_flight' && refused !== 'invalid_request';
}

function factsOf(
  { offer }: DecideDeps,
  { request, headers }: ReadRequest,
  verdict: TargetRefused | null,
  { trustScore, recentFailureRate, recentFinishedJobs }: MarketFacts,
): DecisionFacts {
  return {
    price: offer.price,
    network: offer.network,
    payTo: offer.payTo,
    trustScore,
    recentFailureRate,
    recentFinishedJobs,
    policyVerdict: verdict?.refused ?? 'allowed',
    method: request.method,
    idempotencyKeyPresent: request.idempotencyKey !== null,
    strippedHeaders: headers.stripped.length,
    measured: true,
  };
}

/** Where the log is away the decision is given up: nobody has been told its id, so nobody can lose by it. */
async function record(deps: DecideDeps, decision: DecisionRecorded): Promise<string> {
  const { decisionId } = decision;
  const events = envelope(deps, [{ type: 'DecisionRecorded', data: decision }], decisionId);
  const message = 'The event log is unavailable: nothing was decided.';
  const stored = await withinPatience(deps.clock, message, (clock) =>
    appendUntilKnown({ ...deps, clock }, STREAM.decision(decisionId), 'no_stream', events),
  );
  return stored.position;
}
