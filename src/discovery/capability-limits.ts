// Every limit that a caller can meet, with what happens beyond it. The numbers are the ones that are enforced.
import { LIMITS } from '../domain/limits.ts';
import type { Facts } from './facts.ts';

/** `value`: in `unit`; `default` where a caller may leave it out. */
export type LimitTold = {
  readonly name: string;
  readonly unit: string;
  readonly min: number | null;
  readonly max: number;
  readonly default: number | null;
  readonly meaning: string;
  /** What a caller gets who goes beyond it. */
  readonly beyond: string;
};

type Range = { readonly min: number; readonly max: number; readonly default: number };
type Told = Pick<LimitTold, 'unit' | 'meaning' | 'beyond'>;

const upTo = (name: string, max: number, told: Told): LimitTold => ({
  name,
  ...told,
  min: null,
  max,
  default: null,
});
const range = (name: string, { min, max, default: usual }: Range, told: Told): LimitTold => ({
  name,
  ...told,
  min,
  max,
  default: usual,
});

const INVALID = '400 invalid_request; nothing is clamped.';

const ASKED: readonly LimitTold[] = [
  upTo('urlLength', LIMITS.urlMaxLength, {
    unit: 'characters',
    meaning: 'Length of url.',
    beyond: INVALID,
  }),
  range('retryAttempts', LIMITS.attempts, {
    unit: 'attempts',
    meaning: 'retry.attempts: attempts of one call, the first included.',
    beyond: INVALID,
  }),
  range('retryBackoffMs', LIMITS.backoffMs, {
    unit: 'ms',
    meaning: 'retry.backoffMs: base of the exponential backoff with full jitter.',
    beyond: INVALID,
  }),
  upTo('retryWaitMs', LIMITS.retryWaitMaxMs, {
    unit: 'ms',
    meaning: 'Longest wait between two attempts, and the longest Retry-After of a target that is honoured.',
    beyond: 'A longer Retry-After ends the job as failed.',
  }),
  range('timeoutMs', LIMITS.timeoutMs, {
    unit: 'ms',
    meaning: 'timeoutMs: one attempt from its look-up to the last byte read.',
    beyond: `${INVALID} A target that takes longer is errorCategory timeout.`,
  }),
  upTo('idempotencyKeyLength', LIMITS.idempotencyKeyMaxLength, {
    unit: 'characters',
    meaning: 'idempotencyKey: at least 1 character.',
    beyond: INVALID,
  }),
  upTo('requestBodyBytes', LIMITS.requestBodyBytes, {
    unit: 'bytes',
    meaning: 'The whole JSON body of a call to this service.',
    beyond: '413 body_too_large.',
  }),
  upTo('requestBodyArrivalMs', LIMITS.requestBodyArrivalMs, {
    unit: 'ms',
    meaning: 'Time in which that body has to arrive.',
    beyond: '408 body_timeout.',
  }),
  upTo('jsonDepth', LIMITS.jsonDepth, {
    unit: 'levels',
    meaning: 'Nesting of that body.',
    beyond: INVALID,
  }),
  upTo('mcpMessageBytes', LIMITS.requestBodyBytes + LIMITS.mcpEnvelope.bytes, {
    unit: 'bytes',
    meaning: 'A whole MCP message, payment included.',
    beyond: '413, as an error of JSON-RPC.',
  }),
  upTo('mcpMessageDepth', LIMITS.jsonDepth + LIMITS.mcpEnvelope.levels, {
    unit: 'levels',
    meaning: 'Nesting of an MCP message.',
    beyond: '400, as an error of JSON-RPC.',
  }),
  upTo('targetHeaders', LIMITS.targetHeaders.count, {
    unit: 'headers',
    meaning: 'Number of headers.',
    beyond: INVALID,
  }),
  upTo('targetHeaderBytes', LIMITS.targetHeaders.bytes, {
    unit: 'bytes',
    meaning: 'Names and values of all headers.',
    beyond: INVALID,
  }),
  upTo('decideBodyBytes', LIMITS.decideBodyBytes, {
    unit: 'bytes',
    meaning: 'The whole JSON body of a decision.',
    beyond: '413 body_too_large.',
  }),
];

const ANSWERED: readonly LimitTold[] = [
  upTo('responseBodyBytes', LIMITS.responseBodyBytes, {
    unit: 'bytes',
    meaning: 'How much of the answer of the target is read and hashed. It is never returned or stored.',
    beyond: 'Reading stops; the receipt says truncated.',
  }),
  upTo('responseHeaderBytes', LIMITS.responseHeaderBytes, {
    unit: 'bytes',
    meaning: 'Headers of the answer of the target.',
    beyond: 'errorCategory protocol_error.',
  }),
  upTo('policyDnsMs', LIMITS.policyDnsMs, {
    unit: 'ms',
    meaning: 'Look-up of the target before anything is settled.',
    beyond: '400 target_unresolvable, details.retryable true.',
  }),
  upTo('answerWaitMs', LIMITS.caughtUpWaitMs, {
    unit: 'ms',
    meaning: 'How long an answer waits so that its links work at once.',
    beyond: 'It goes out without waiting longer; a link then answers 503 for a moment.',
  }),
  range('recentProofs', LIMITS.proofs, {
    unit: 'proofs',
    meaning: 'limit of recent proofs.',
    beyond: INVALID,
  }),
  range('recentDecisions', LIMITS.decisions, {
    unit: 'decisions',
    meaning: 'limit of recent decisions.',
    beyond: INVALID,
  }),
  range('monitoringWindowMs', LIMITS.monitoringWindowMs, {
    unit: 'ms',
    meaning: 'windowMs of the monitoring summary.',
    beyond: INVALID,
  }),
  upTo('recentFailures', LIMITS.recentFailures, {
    unit: 'failures',
    meaning: 'recentFailures of the monitoring summary.',
    beyond: 'Older ones are left out.',
  }),
];

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
    unit: 'calls a minute',
    meaning: 'Paid calls of one address whose signature only its contract can judge.',
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
];

/** Those of this deployment's configuration come last. */
export function limitsTold({ rateLimitPerMinute, targetQuota }: Facts): readonly LimitTold[] {
  return [
    ...ASKED,
    ...ANSWERED,
    ...PACED,
    upTo('perMinutePerClientAddress', rateLimitPerMinute, {
      unit: 'calls a minute',
      meaning:
        'Calls of one client address (IPv6: of its /64) to the paid routes together; policy check, handoff and schedule preview are counted apart, each.',
      beyond: '429 rate_limited, with Retry-After and RateLimit headers.',
    }),
    upTo('canaryPerMinutePerClientAddress', rateLimitPerMinute * LIMITS.generousRateFactor, {
      unit: 'calls a minute',
      meaning: 'Calls of one client address to the free test target; messages to /mcp are counted apart, as many.',
      beyond: '429 rate_limited.',
    }),
    ...(targetQuota === null
      ? []
      : [
          upTo('perTargetHost', targetQuota.maxRequests, {
            unit: `calls in ${targetQuota.windowMs} ms`,
            meaning: 'Calls of one payer to one target host.',
            beyond: '429 target_quota_exceeded.',
          }),
        ]),
  ];
}
