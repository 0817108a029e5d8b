// Sample events, each a whole and true one; a test overrides only what it speaks of.
import { type EventFacts, type EventOf, type EventType, event } from '#src/domain/events.ts';
import { leaseMs } from '#src/domain/job/commands.ts';

export const JOB_ID = 'job_0000000000000000000000000a';
export const OTHER_JOB_ID = 'job_0000000000000000000000000b';
export const T0 = Date.parse('2026-01-02T03:04:05.000Z');
/** `ms` after the samples' beginning, as events write it. */
export const at = (ms: number) => new Date(T0 + ms).toISOString();

export const commitment = (letter: string) => letter.repeat(43);
export const hex = (digit: string) => digit.repeat(64);

const sample =
  <T extends EventType>(type: T, facts: EventFacts<T>) =>
  (changes: Partial<EventOf<T>['data']> = {}): EventOf<T> =>
    event(type, { ...facts, ...changes });

export const jobStarted = sample('JobStarted', {
  jobId: JOB_ID,
  mode: 'demo',
  route: 'execute/webhook',
  method: 'POST',
  fingerprint: hex('f'),
  payment: null,
  paymentStream: null,
  claimStream: null,
  decisionId: null,
  decisionHash: null,
  attemptsAllowed: 3,
  backoffMs: 250,
  timeoutMs: 12_000,
  leaseMs: leaseMs(3, 12_000),
  owner: 'owner-1',
  commitments: {
    target_url: commitment('U'),
    target_origin: commitment('O'),
    header_names: commitment('H'),
    request_body_sha256: commitment('B'),
    idempotency_key: commitment('K'),
  },
  startedAt: at(0),
  schedule: null,
});

const timings = { dnsMs: 1, connectMs: 2.5, tlsMs: 3, ttfbMs: 4, totalMs: 10.5 };

const retried: EventFacts<'AttemptMade'> = {
  jobId: JOB_ID,
  number: 1,
  startedAt: at(10),
  endedAt: at(20),
  phase: 'body',
  sent: 'yes',
  outcome: 'failed',
  status: 503,
  errorCategory: 'target_server_error',
  reason: 'http_status',
  timings,
  tlsVersion: 'TLSv1.3',
  exempted: false,
  leafCommitment: commitment('L'),
  addressCommitment: commitment('A'),
  retryAfterMs: 100,
  willRetry: true,
  waitMs: 100,
};

/** A failed attempt that another follows. */
export const attemptRetried = sample('AttemptMade', retried);

export const attemptSucceeded = sample('AttemptMade', {
  ...retried,
  startedAt: at(30),
  endedAt: at(40),
  outcome: 'succeeded',
  status: 200,
  errorCategory: null,
  reason: null,
  retryAfterMs: null,
  willRetry: false,
  waitMs: null,
});

export const jobCompleted = sample('JobCompleted', {
  jobId: JOB_ID,
  decisionId: null,
  status: 'succeeded',
  attempts: 1,
  responseStatus: 200,
  errorCategory: null,
  responseBytes: 2,
  truncated: false,
  responseCommitment: commitment('R'),
  closedBy: 'owner',
  completedAt: at(41),
});

export const receiptSigned = sample('ReceiptSigned', {
  jobId: JOB_ID,
  decisionId: null,
  receiptId: 'rcpt_0000000000000000000000000c',
  keyId: commitment('k'),
  jws: 'a.b.c',
  signedAt: at(42),
});

/** Named after the sample's authorization. */
export const PAYMENT_STREAM = 'payment-0fd20c848f1672641cfde44db0ec069225fa6fcaeffb38c30c511c53cd5a64df';
export const CLAIM_STREAM = `claim-${hex('8')}`;

export const paymentReserved = sample('PaymentReserved', {
  jobId: JOB_ID,
  fingerprint: hex('f'),
  scheme: 'exact',
  network: 'eip155:8453',
  asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  amount: '3000',
  payTo: '0x1111111111111111111111111111111111111111',
  payer: '0x2222222222222222222222222222222222222222',
  nonce: `0x${hex('7')}`,
  validBefore: String(T0 / 1000 + 120),
  payloadHash: hex('6'),
  x402Version: 2,
  owner: 'owner-1',
  reservedAt: at(0),
});

export const paymentSettled = sample('PaymentSettled', {
  jobId: JOB_ID,
  transaction: `0x${hex('5')}`,
  evidence: 'facilitator',
  settledAt: at(5),
  statement: null,
});

export const refundBegun = sample('RefundBegun', {
  jobId: JOB_ID,
  served: false,
  statement: null,
  begunAt: at(80),
});

export const refundCancelled = sample('RefundCancelled', {
  jobId: JOB_ID,
  reason: 'operator',
  cancelledAt: at(90),
});

export const paymentRefunded = sample('PaymentRefunded', {
  jobId: JOB_ID,
  network: paymentReserved().data.network,
  asset: paymentReserved().data.asset,
  amount: '3000',
  payer: paymentReserved().data.payer,
  transaction: `0x${hex('6')}`,
  evidence: 'chain',
  refundedAt: at(100),
  sender: paymentReserved().data.payTo,
});

export const refundClaimed = sample('RefundClaimed', {
  network: paymentReserved().data.network,
  transaction: paymentRefunded().data.transaction,
  transfers: [
    {
      asset: paymentReserved().data.asset,
      sender: paymentReserved().data.payTo,
      payer: paymentReserved().data.payer,
      amount: '3000',
      refunds: [{ payment: PAYMENT_STREAM, jobId: JOB_ID, amount: '3000' }],
    },
  ],
  released: [],
  claimedAt: at(95),
});

export const paymentRejected = sample('PaymentRejected', {
  jobId: JOB_ID,
  reason: 'insufficient_funds',
  evidence: 'facilitator',
  rejectedAt: at(5),
  statement: null,
});

export const paymentReleased = sample('PaymentReleased', {
  jobId: JOB_ID,
  reason: 'key_lost',
  lostKeyTo: OTHER_JOB_ID,
  releasedAt: at(5),
});

export const SCHEDULE_ID = 'sch_0000000000000000000000000d';

/** Of the sample payment, for the second run of the sample schedule. */
export const paymentDeferred = sample('PaymentDeferred', {
  jobId: JOB_ID,
  fingerprint: hex('f'),
  scheme: 'exact',
  network: 'eip155:8453',
  asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  amount: '3000',
  payTo: '0x1111111111111111111111111111111111111111',
  payer: '0x2222222222222222222222222222222222222222',
  nonce: `0x${hex('7')}`,
  validBefore: String(T0 / 1000 + 120),
  payloadHash: hex('6'),
  x402Version: 2,
  scheduleId: SCHEDULE_ID,
  run: 1,
  dueAt: at(60_000),
  deferredAt: at(0),
});

export const scheduleDefined = sample('ScheduleDefined', {
  scheduleId: SCHEDULE_ID,
  mode: 'x402',
  schedule: { type: 'interval', everyMinutes: 10, startAt: at(60_000) },
  catchUpSeconds: 300,
  fingerprint: hex('9'),
  cancelHash: hex('a'),
  sealed: 'sch_1',
  endsAt: at(30 * 86_400_000),
  next: { run: 1, dueAt: at(60_000) },
  definedAt: at(0),
});

export const runFunded = sample('RunFunded', {
  scheduleId: SCHEDULE_ID,
  run: 1,
  jobId: JOB_ID,
  dueAt: at(60_000),
  paymentStream: PAYMENT_STREAM,
  validBefore: T0 / 1000 + 480,
  holder: hex('4'),
  client: hex('5'),
  sealed: 'job_1',
  next: { run: 2, dueAt: at(660_000) },
  fundedAt: at(0),
});

export const runStarted = sample('RunStarted', {
  scheduleId: SCHEDULE_ID,
  run: 1,
  jobId: JOB_ID,
  owner: 'owner-1',
  startedAt: at(60_000),
});

export const runSkipped = sample('RunSkipped', {
  scheduleId: SCHEDULE_ID,
  run: 1,
  dueAt: at(60_000),
  plannedJobId: JOB_ID,
  reason: 'missed',
  movedTo: null,
  next: { run: 2, dueAt: at(660_000) },
  skippedAt: at(400_000),
});

export const schedulePaused = sample('SchedulePaused', { scheduleId: SCHEDULE_ID, pausedAt: at(1_900_000) });

export const scheduleCancelled = sample('ScheduleCancelled', {
  scheduleId: SCHEDULE_ID,
  cancelledAt: at(10_000),
});

export const settlementUnknown = sample('SettlementUnknown', {
  jobId: JOB_ID,
  cause: 'timeout',
  transaction: null,
  unknownAt: at(5),
});

export const settlementRetried = sample('SettlementRetried', {
  jobId: JOB_ID,
  owner: 'owner-1',
  retriedAt: at(6),
});

export const paymentMissing = sample('PaymentMissing', {
  jobId: JOB_ID,
  transaction: paymentSettled().data.transaction,
  finding: 'unused',
  upToBlock: 1_060,
  missingAt: at(90_000),
});

export const settlementCorrected = sample('SettlementCorrected', {
  jobId: JOB_ID,
  recorded: paymentSettled().data.transaction,
  transaction: `0x${hex('8')}`,
  correctedAt: at(61_000),
});

export const keyClaimed = sample('IdempotencyKeyClaimed', {
  jobId: JOB_ID,
  fingerprint: hex('f'),
  paymentStream: PAYMENT_STREAM,
  claimedAt: at(1),
});

export const keyReleased = sample('IdempotencyKeyReleased', {
  jobId: JOB_ID,
  reason: 'payment_rejected',
  releasedAt: at(9),
});

export const CHAIN_STREAM = `chain-eip155:8453:${paymentReserved().data.payTo}`;

/** It confirms the sample payment. */
export const chainReconciled = sample('ChainReconciled', {
  network: paymentReserved().data.network,
  asset: paymentReserved().data.asset,
  payee: paymentReserved().data.payTo,
  fromBlock: 1_001,
  toBlock: 1_030,
  blockHash: `0x${hex('b')}`,
  blockTime: at(60_000),
  received: '3000',
  transfers: 1,
  confirmed: [PAYMENT_STREAM.slice('payment-'.length)],
  settledFound: 0,
  missing: 0,
  corrected: 0,
  unattributed: [],
  reconciledAt: at(61_000),
});

export const keyActivated = sample('SigningKeyActivated', {
  keyId: commitment('k'),
  purpose: 'receipt',
  alg: 'EdDSA',
  x: commitment('x'),
  secretCheck: hex('3'),
  activatedAt: at(0),
});

export const keyRetired = sample('SigningKeyRetired', {
  keyId: commitment('k'),
  reason: 'rotated',
  effectiveAt: at(600_000),
  compromisedAt: null,
  retiredAt: at(0),
});

export const decisionRecorded = sample('DecisionRecorded', {
  decisionId: 'dec_0000000000000000000000000d',
  recommendation: 'pay_and_execute',
  confidence: 'high',
  blockingIssues: [],
  warnings: [],
  reasons: [{ code: 'policy_passed', message: 'Nothing speaks against it.' }],
  actionHash: hex('2'),
  policyHash: hex('1'),
  buyerPolicy: {
    maxPriceUsd: '0.01',
    requireReceipt: true,
    requirePolicyPass: true,
    requireIdempotencyKey: true,
    minTrustScore: 55,
    allowedNetworks: ['eip155:8453'],
  },
  facts: {
    price: '0.003',
    network: 'eip155:8453',
    payTo: '0x1111111111111111111111111111111111111111',
    trustScore: 97.5,
    recentFailureRate: 0.125,
    recentFinishedJobs: 8,
    policyVerdict: 'allowed',
    method: 'POST',
    idempotencyKeyPresent: true,
    strippedHeaders: 0,
    measured: true,
    contentTypeDiffers: false,
  },
  createdAt: at(0),
  expiresAt: at(86_400_000),
});

export const checkpointSigned = sample('CheckpointSigned', {
  origin: 'relay.example/receipts',
  size: '1',
  root: 'bjQLnP+zepicpUTmu3gKLHiQHT+zNzh2hRGjBhevoB0=',
  keyId: commitment('c'),
  note: 'relay.example/receipts\n1\nbjQLnP+zepicpUTmu3gKLHiQHT+zNzh2hRGjBhevoB0=\n\n— relay.example/receipts AAAA\n',
  signedAt: at(50),
});

/** The cosignature of a witness: its time, and no signature that verifies. */
export const checkpointCosigned = sample('CheckpointCosigned', {
  origin: 'relay.example/receipts',
  size: '1',
  root: 'bjQLnP+zepicpUTmu3gKLHiQHT+zNzh2hRGjBhevoB0=',
  note: 'relay.example/receipts\n1\nbjQLnP+zepicpUTmu3gKLHiQHT+zNzh2hRGjBhevoB0=\n\n— relay.example/receipts AAAA\n',
  cosignatures: [
    {
      name: 'witness.example/w1',
      keyId: 'd566cf3f',
      time: 1767323045,
      /** Key id, time, and 64 zero bytes. */
      line: `— witness.example/w1 1WbPPwAAAABpVzWl${'A'.repeat(86)}==`,
    },
  ],
  quorum: 'w1',
  cosignedAt: at(60),
});
