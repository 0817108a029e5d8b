// Every limit that a caller can meet, with what happens beyond it. The numbers are the ones that are enforced.

import type { Facts } from '#src/discovery/facts.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { limitsPaced } from './capability-limits-paced.ts';
import { INVALID, type LimitTold, range, upTo } from './limit-text.ts';

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
  range(
    'idempotencyKeyLength',
    { min: LIMITS.idempotencyKeyMinLength, max: LIMITS.idempotencyKeyMaxLength },
    { unit: 'characters', meaning: 'Length of idempotencyKey.', beyond: INVALID },
  ),
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

const { handoff, schedule } = LIMITS;
const INVALID_ACTIONS = '400 invalid_handoff_actions.';
const INVALID_SCHEDULE = '400 invalid_schedule.';

/** Of the free surfaces: their own documents say what they are limits of. */
const PLANNED: readonly LimitTold[] = [
  range('handoffActions', handoff.actions, {
    unit: 'actions',
    meaning: 'actions of a browser handoff.',
    beyond: INVALID_ACTIONS,
  }),
  upTo('handoffTextLength', handoff.textMaxLength, {
    unit: 'characters',
    meaning: 'description and text of an action.',
    beyond: INVALID_ACTIONS,
  }),
  upTo('handoffSelectorLength', handoff.selectorMaxLength, {
    unit: 'characters',
    meaning: 'selector of an action.',
    beyond: INVALID_ACTIONS,
  }),
  upTo('handoffValidMs', handoff.validMs, {
    unit: 'ms',
    meaning: 'From createdAt to expiresAt of a package.',
    beyond: 'Ask for a new one: nothing is kept here.',
  }),
  upTo('scheduleNextRuns', schedule.nextRuns, {
    unit: 'runs',
    meaning: 'nextRuns of a preview.',
    beyond: 'Later ones are not shown.',
  }),
  upTo('scheduleTimezoneLength', schedule.timezoneMaxLength, {
    unit: 'characters',
    meaning: 'timezone of a schedule.',
    beyond: INVALID_SCHEDULE,
  }),
  upTo('scheduleRunAtLength', schedule.runAtMaxLength, {
    unit: 'characters',
    meaning: 'runAt of a schedule.',
    beyond: INVALID_SCHEDULE,
  }),
];

export const limitsTold = (facts: Facts): readonly LimitTold[] => [
  ...ASKED,
  ...ANSWERED,
  ...PLANNED,
  ...limitsPaced(facts),
];
