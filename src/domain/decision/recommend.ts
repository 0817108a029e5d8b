// What a buyer is recommended to do, from recorded facts and its own policy alone: the event suffices to repeat it.
import { BODY_IS_JSON } from '#src/domain/job/webhook-request.ts';
import { microUsd, showUsd } from '#src/domain/payment/price.ts';
import type { DecisionRecorded } from '../events/decision.ts';
import type { BuyerPolicy } from './requests.ts';

export type DecisionFacts = DecisionRecorded['facts'];
export type Recommended = Pick<
  DecisionRecorded,
  'recommendation' | 'confidence' | 'blockingIssues' | 'warnings' | 'reasons'
>;

/** What executions would have to show before their failures count, and what share of them is too much. */
export const RECENT_FAILURES = { rate: 0.25, minFinished: 20 } as const;

type Finding = {
  /** `note`: said in every case, weighs nothing. `good`: said where nothing speaks against the call. */
  readonly weight: 'blocking' | 'warning' | 'note' | 'good';
  readonly code: string;
  readonly message: string;
};
type Check = (facts: DecisionFacts, policy: BuyerPolicy) => Finding | null;

/** Deterministic. `reasons`, never none: what led to it first, then what could not be judged. */
export function recommend(facts: DecisionFacts, policy: BuyerPolicy): Recommended {
  const findings = CHECKS.map((check) => check(facts, policy)).filter((finding) => finding !== null);
  const textsOf = (weight: Finding['weight']) =>
    findings.filter((finding) => finding.weight === weight).map(said);
  const [blockingIssues, warnings, notes] = [textsOf('blocking'), textsOf('warning'), textsOf('note')];
  if (blockingIssues.length > 0) {
    const reasons = [...blockingIssues, ...warnings, ...notes];
    return { recommendation: 'do_not_pay', confidence: 'high', blockingIssues, warnings, reasons };
  }
  if (warnings.length > 0) {
    const reasons = [...warnings, ...notes];
    return { recommendation: 'manual_review', confidence: 'medium', blockingIssues, warnings, reasons };
  }
  const reasons = [...textsOf('good'), ...notes];
  return { recommendation: 'pay_and_execute', confidence: 'high', blockingIssues, warnings, reasons };
}

const said = ({ code, message }: Finding) => ({ code, message });

const finding =
  (weight: Finding['weight']) =>
  (code: string, message: string): Finding => ({ weight, code, message });
const [blocking, warning, note, good] = [
  finding('blocking'),
  finding('warning'),
  finding('note'),
  finding('good'),
];

const price: Check = (facts, { maxPriceUsd }) => {
  const asked = microUsd(facts.price);
  const shown = asked === null ? facts.price : showUsd(asked);
  if (maxPriceUsd === null) return good('price_accepted', `A call costs ${shown}; no maximum was given.`);
  const most = microUsd(maxPriceUsd);
  // What cannot be compared is not known to be within the maximum.
  if (asked === null || most === null || asked > most) {
    const limit = most === null ? maxPriceUsd : showUsd(most);
    return blocking('price_over_max', `A call costs ${shown}, which is not within the maximum of ${limit}.`);
  }
  return good('price_accepted', `A call costs ${shown}, within the maximum of ${showUsd(most)}.`);
};

const network: Check = (facts, { allowedNetworks }) => {
  if (allowedNetworks === null) return null;
  const asked = `Payment is asked for on ${facts.network}`;
  return allowedNetworks.includes(facts.network)
    ? good('network_allowed', `${asked}, an allowed network.`)
    : blocking('network_not_allowed', `${asked}, which is not among the allowed networks.`);
};

/** A policy verdict: DNS gave no answer, so that nothing is known of the target. */
export const UNRESOLVED_NOW = 'target_unresolved_now';

const target: Check = ({ policyVerdict }, { requirePolicyPass }) => {
  if (policyVerdict === 'allowed')
    return good('policy_passed', 'The target policy lets this action through.');
  if (policyVerdict === UNRESOLVED_NOW) {
    const message = 'The target host could not be looked up now: request another decision later.';
    return warning(UNRESOLVED_NOW, message);
  }
  const message = `As things are, an execution of this action would be refused: ${policyVerdict}.`;
  return (requirePolicyPass ? blocking : warning)(policyVerdict, message);
};

const idempotencyKey: Check = ({ idempotencyKeyPresent }, { requireIdempotencyKey }) => {
  if (idempotencyKeyPresent) {
    const message = 'The action has an idempotencyKey: a repeat is answered with the stored result.';
    return good('idempotency_key_present', message);
  }
  const message = 'The action has no idempotencyKey, and the buyer policy requires one.';
  return requireIdempotencyKey ? warning('idempotency_key_missing', message) : null;
};

const headers: Check = ({ strippedHeaders }) =>
  strippedHeaders === 0
    ? null
    : warning('headers_stripped', `Headers of the action that will not be forwarded: ${strippedHeaders}.`);

const body: Check = ({ contentTypeDiffers }) =>
  contentTypeDiffers ? warning(BODY_IS_JSON.code, BODY_IS_JSON.message) : null;

const trust: Check = ({ trustScore, measured }, { minTrustScore }) => {
  if (!measured) {
    const message = 'The trust score and recent failures are unknown: the read models were unavailable.';
    return warning('trust_unavailable', message);
  }
  if (trustScore === null) {
    const message = 'There is no trust score yet: nothing was measured that it could be computed from.';
    return note('trust_score_unknown', message);
  }
  const stated = `The trust score is ${trustScore}`;
  return trustScore < minTrustScore
    ? warning('trust_score_under_minimum', `${stated}, under the minimum of ${minTrustScore}.`)
    : good('trust_score_sufficient', `${stated}, not under the minimum of ${minTrustScore}.`);
};

const recentFailures: Check = ({ recentFailureRate, recentFinishedJobs, measured }) => {
  if (!measured) return null;
  if (recentFinishedJobs < RECENT_FAILURES.minFinished) {
    const message = `Too few jobs finished recently to judge by their failures: ${recentFinishedJobs}.`;
    return note('recent_jobs_few', message);
  }
  const share = `${Math.round(recentFailureRate * 1000) / 10} %`;
  const message = `Of ${recentFinishedJobs} jobs finished recently ${share} failed.`;
  return recentFailureRate > RECENT_FAILURES.rate
    ? warning('recent_failures_high', message)
    : good('recent_failures_low', message);
};

const receipt: Check = (_, { requireReceipt }) =>
  requireReceipt
    ? good('receipt_signed', 'Every execution, also one that fails, is answered with a signed receipt.')
    : null;

const CHECKS: readonly Check[] = [
  price,
  network,
  target,
  idempotencyKey,
  headers,
  body,
  trust,
  recentFailures,
  receipt,
];
