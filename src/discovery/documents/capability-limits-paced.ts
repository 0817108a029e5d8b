// How often, how many at once and how long: the limits that depend on other callers, and on this deployment.

import type { Facts } from '#src/discovery/facts.ts';
import { longestRunMs } from '#src/domain/job/retry.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { type LimitTold, range, upTo } from './limit-text.ts';

const PACED: readonly LimitTold[] = [
  upTo('inFlightPerPayer', LIMITS.jobsInFlightPerPayer, {
    unit: 'calls',
    meaning: 'Paid calls of one payer at the same time, unconfirmed payments among them.',
    beyond: '429 too_many_in_flight.',
  }),
  upTo('perMinutePerPayer', LIMITS.jobsPerMinutePerPayer, {
    unit: 'calls a minute',
    meaning: 'Paid calls of one payer.',
    beyond: '429 rate_limited.',
  }),
  upTo('verifiesInFlight', LIMITS.verifiesInFlight, {
    unit: 'payments',
    meaning: 'Payments being verified at the same time by one process, over all payers.',
    beyond: '429 too_many_in_flight.',
  }),
  upTo('contractWalletPerMinute', LIMITS.contractWalletPerMinute, {
    unit: 'failed calls a minute',
    meaning: 'Failed paid calls of one client address in the name of one contract wallet.',
    beyond: '429 rate_limited.',
  }),
  upTo('mismatchesPerPayment', LIMITS.mismatches.max, {
    unit: 'requests',
    meaning: `Requests that a completed payment was not made for; after them it answers nothing else for ${LIMITS.mismatches.closedMs} ms.`,
    beyond: '409 payment_reused.',
  }),
  upTo('decisionsPerMinute', LIMITS.decidesPerMinute, {
    unit: 'decisions a minute',
    meaning: 'Decisions asked for by one client address.',
    beyond: '429 rate_limited.',
  }),
  upTo('decisionsPerDay', LIMITS.decidesPerDay, {
    unit: 'decisions a day',
    meaning: 'Decisions asked for by one client address.',
    beyond: '429 rate_limited.',
  }),
  range('authorizationSeconds', LIMITS.authorizationSeconds, {
    unit: 's',
    meaning: 'How far ahead of now the authorization of a payment ends (validBefore).',
    beyond: '402 authorization_too_far_ahead, or authorization_expired at the minimum and below.',
  }),
];

/** Those of this deployment's configuration come last. */
export function limitsPaced(facts: Facts): readonly LimitTold[] {
  const { rateLimitPerMinute, maxInFlight } = facts;
  return [
    ...PACED,
    ...waits(facts),
    upTo('inFlight', maxInFlight, {
      unit: 'calls',
      meaning: 'Executions at the same time by one process, over all payers.',
      beyond: '429 too_many_in_flight.',
    }),
    upTo('perMinutePerClientAddress', rateLimitPerMinute, {
      unit: 'calls a minute',
      meaning:
        'Calls of one client address (IPv6: of its /64) to the paid routes together; policy check, handoff and schedule preview are counted apart, each.',
      beyond: '429 rate_limited, with Retry-After and RateLimit headers.',
    }),
    upTo('canaryPerMinutePerClientAddress', rateLimitPerMinute * LIMITS.generousRateFactor, {
      unit: 'calls a minute',
      meaning: 'Calls of one client address to the test target; messages to /mcp are counted apart, as many.',
      beyond: '429 rate_limited.',
    }),
    ...quotas(facts),
  ];
}

/** From the request's last byte to the answer's first. */
function waits({ facilitatorTimeoutMs }: Facts): readonly LimitTold[] {
  const { attempts, timeoutMs, policyDnsMs, caughtUpWaitMs, answerBudgetMs } = LIMITS;
  const paymentMs = facilitatorTimeoutMs === null ? 0 : 2 * facilitatorTimeoutMs;
  const stepsMs = policyDnsMs + paymentMs + longestRunMs(attempts.max, timeoutMs.max) + caughtUpWaitMs;
  const latestMs = answerBudgetMs + caughtUpWaitMs;
  const settling = facilitatorTimeoutMs === null ? '' : ', the payment verified and settled';
  return [
    upTo('callMs', Math.min(stepsMs, latestMs), {
      unit: 'ms',
      meaning: `The longest that an execution takes: the target looked up${settling}, every attempt to its timeout with the longest waits between. Set the timeout of your client above it.`,
      beyond: 'A part of the service is slow: see answerMs.',
    }),
    upTo('answerMs', latestMs, {
      unit: 'ms',
      meaning: 'When an execution is answered at the latest, whatever is slow.',
      beyond:
        '503 event_log_unavailable. The call may go on: repeat the same request with the same payment header.',
    }),
  ];
}

function quotas({ targetQuota }: Facts): readonly LimitTold[] {
  if (targetQuota === null) return [];
  const { windowMs, maxRequests } = targetQuota;
  const unit = `calls in ${windowMs} ms`;
  const beyond = '429 target_quota_exceeded.';
  return [
    upTo('perTargetHost', maxRequests, { unit, meaning: 'Calls of one payer to one target host.', beyond }),
    upTo('perTargetHostOfAll', maxRequests * LIMITS.targetQuotaAllPayersFactor, {
      unit,
      meaning: 'Calls of all payers together to one target host.',
      beyond,
    }),
  ];
}
