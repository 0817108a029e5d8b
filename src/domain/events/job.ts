// Events of a job's stream, `job-<jobId>`: JobStarted → AttemptMade … → JobCompleted, ReceiptSigned.
import { Type } from '@sinclair/typebox';
import {
  Commitment,
  Count,
  declareEvent,
  declareVersions,
  ErrorCategory,
  type EventData,
  Hex,
  HttpStatus,
  Instant,
  Method,
  Mode,
  Nullable,
  oneOf,
  PaymentFacts,
  Phase,
  RequestCommitments,
  Route,
  ScheduledRun,
  Sent,
  Text,
  Timings,
  Truncated,
} from '../event-fields.ts';
import type { FailureReason } from '../failure-reasons.ts';

const start = {
  jobId: Text,
  mode: Mode,
  route: Route,
  method: Method,
  fingerprint: Hex,
  payment: Nullable(PaymentFacts),
  paymentStream: Nullable(Text),
  claimStream: Nullable(Text),
  decisionId: Nullable(Text),
  decisionHash: Nullable(Hex),
  attemptsAllowed: Type.Integer({ minimum: 1, maximum: 3 }),
  backoffMs: Count,
  timeoutMs: Count,
  /** A recoverer may close the job after it has watched the stream unchanged for this and a grace. */
  leaseMs: Count,
  /** The process that runs the job: random, new at each start. */
  owner: Text,
  commitments: RequestCommitments,
  startedAt: Instant,
};

/** Announces that attempt 1 is about to be sent. `schedule`: the run of a schedule that it is; null: it is none. */
export const JobStarted = declareVersions(
  'job',
  'startedAt',
  { 1: start, 2: { ...start, schedule: Nullable(ScheduledRun) } },
  { 1: (recorded) => ({ ...recorded, schedule: null }) },
);
export type JobStarted = EventData<typeof JobStarted>;

const attempt = {
  jobId: Text,
  number: Type.Integer({ minimum: 1, maximum: 3 }),
  startedAt: Instant,
  endedAt: Instant,
  phase: Phase,
  sent: Sent,
  outcome: oneOf('succeeded', 'failed'),
  status: Nullable(HttpStatus),
  errorCategory: Nullable(ErrorCategory),
  timings: Timings,
  tlsVersion: Nullable(Text),
  /** true where EGRESS_ALLOW_CIDRS let a non-public address through. */
  exempted: Type.Boolean(),
  leafCommitment: Nullable(Commitment),
  addressCommitment: Nullable(Commitment),
  retryAfterMs: Nullable(Count),
  willRetry: Type.Boolean(),
  /** The wait before the next attempt; null where there is none. */
  waitMs: Nullable(Count),
};

/** One of a fixed list. Not in the schema: the verifier has the schemas of all events, and needs no list of reasons. */
const Reason = Type.Unsafe<FailureReason>(Text);

/** `reason`: null for a success, and for a failure that was recorded before reasons were. */
export const AttemptMade = declareVersions(
  'job',
  'endedAt',
  { 1: attempt, 2: { ...attempt, reason: Nullable(Reason) } },
  { 1: (recorded) => ({ ...recorded, reason: null }) },
);
export type AttemptMade = EventData<typeof AttemptMade>;

const completion = {
  jobId: Text,
  decisionId: Nullable(Text),
  status: oneOf('succeeded', 'failed'),
  attempts: Type.Integer({ minimum: 0, maximum: 3 }),
  responseStatus: Nullable(HttpStatus),
  errorCategory: Nullable(ErrorCategory),
  /** Bytes of the body as read, at most the cap; null where no response came. */
  responseBytes: Nullable(Count),
  responseCommitment: Nullable(Commitment),
  /** `recovery` where another than the owner closed an interrupted job. */
  closedBy: oneOf('owner', 'recovery'),
  completedAt: Instant,
};

export const JobCompleted = declareVersions(
  'job',
  'completedAt',
  {
    1: { ...completion, truncated: Type.Boolean() },
    2: { ...completion, truncated: Truncated },
  },
  { 1: (recorded) => recorded },
);
export type JobCompleted = EventData<typeof JobCompleted>;

export const ReceiptSigned = declareEvent('job', 'signedAt', {
  jobId: Text,
  decisionId: Nullable(Text),
  receiptId: Text,
  keyId: Text,
  /** Compact JWS (RFC 7515) over RFC 8785 bytes. */
  jws: Text,
  signedAt: Instant,
});
export type ReceiptSigned = EventData<typeof ReceiptSigned>;
