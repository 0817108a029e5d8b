// Every limit that a caller can reach, declared once: the enforced number, its unit, its meaning and the answer when it is
// exceeded. Schemas, checks and documents read this table; a name is the limit's name in the capabilities document.

export type Limit = {
  readonly min?: number;
  readonly max: number;
  /** Set if the caller may omit the value. */
  readonly default?: number;
  readonly unit: string;
  readonly meaning: string;
  readonly whenExceeded: string;
};

const INVALID = '400 invalid_request; the value is not clamped.';
const INVALID_ACTIONS = '400 invalid_handoff_actions.';
const INVALID_SCHEDULE = '400 invalid_schedule.';
const RATE_LIMITED = '429 rate_limited.';

const KIB = 1024;
const BODY_BYTES = 128 * KIB;
const JSON_LEVELS = 64;
// A constant, so that bundles of the verifier leave the table out.
const MISMATCH_BLOCK_MS = 3_600_000;

/** Durations that do not belong to a single request. */
export const TIMES = {
  /** An idempotency key becomes reusable this long after the completion of its job. */
  idempotencyRetentionMs: 7 * 86_400_000,
  /** A decision is valid for this long. */
  decisionValidMs: 24 * 3_600_000,
  /** A payment that reached `mismatchesPerPayment` is accepted only for its own request for this long. */
  mismatchBlockMs: MISMATCH_BLOCK_MS,
  /** The lease of a job is its longest possible run plus this. */
  leaseMarginMs: 15_000,
  /** A job is recovered when its stream has not changed for its lease plus this. */
  recoveryGraceMs: 30_000,
  /** The longest that a caller waits for an execution; the job itself continues. */
  responseDeadlineMs: 110_000,
} as const;

export const LIMITS = {
  urlLength: { max: 4096, unit: 'characters', meaning: 'Length of url.', whenExceeded: INVALID },
  retryAttempts: {
    min: 1,
    max: 3,
    default: 1,
    unit: 'attempts',
    meaning: 'retry.attempts: attempts of one call, the first included.',
    whenExceeded: INVALID,
  },
  retryBackoffMs: {
    min: 0,
    max: 5000,
    default: 250,
    unit: 'ms',
    meaning: 'retry.backoffMs: base of the exponential backoff with full jitter.',
    whenExceeded: INVALID,
  },
  retryWaitMs: {
    max: 5000,
    unit: 'ms',
    meaning: 'Longest wait between two attempts, and the longest Retry-After of a target that is honoured.',
    whenExceeded: 'A longer Retry-After ends the job as failed.',
  },
  timeoutMs: {
    min: 1000,
    max: 12_000,
    default: 12_000,
    unit: 'ms',
    meaning: 'timeoutMs: one attempt from its DNS lookup to the last byte read.',
    whenExceeded: `${INVALID} For a slower target, errorCategory is timeout.`,
  },
  idempotencyKeyLength: {
    min: 1,
    max: 160,
    unit: 'characters',
    meaning: 'Length of idempotencyKey.',
    whenExceeded: INVALID,
  },
  requestBodyBytes: {
    max: BODY_BYTES,
    unit: 'bytes',
    meaning: 'The complete JSON body of a call to this service.',
    whenExceeded: '413 body_too_large.',
  },
  requestBodyArrivalMs: {
    max: 10_000,
    unit: 'ms',
    meaning: 'Time in which that body must arrive.',
    whenExceeded: '408 body_timeout.',
  },
  jsonDepth: { max: JSON_LEVELS, unit: 'levels', meaning: 'Nesting of that body.', whenExceeded: INVALID },
  mcpMessageBytes: {
    // The arguments of a tool and the message around them, payment included.
    max: BODY_BYTES + 32 * KIB,
    unit: 'bytes',
    meaning: 'A complete MCP message, payment included.',
    whenExceeded: '413, as a JSON-RPC error.',
  },
  mcpMessageDepth: {
    max: JSON_LEVELS + 2,
    unit: 'levels',
    meaning: 'Nesting of an MCP message.',
    whenExceeded: '400, as a JSON-RPC error.',
  },
  targetHeaders: { max: 64, unit: 'headers', meaning: 'Number of headers.', whenExceeded: INVALID },
  targetHeaderBytes: {
    max: 16 * KIB,
    unit: 'bytes',
    meaning: 'Names and values of all headers.',
    whenExceeded: INVALID,
  },
  decideBodyBytes: {
    max: 16 * KIB,
    unit: 'bytes',
    meaning: 'The complete JSON body of a decision.',
    whenExceeded: '413 body_too_large.',
  },
  responseBodyBytes: {
    max: 64 * KIB,
    unit: 'bytes',
    meaning: 'How much of the answer of the target is read and hashed. It is never returned or stored.',
    whenExceeded: 'Reading stops; the receipt states truncated.',
  },
  responseHeaderBytes: {
    max: 16 * KIB,
    unit: 'bytes',
    meaning: 'Headers of the answer of the target.',
    whenExceeded: 'errorCategory protocol_error.',
  },
  policyDnsMs: {
    max: 2000,
    unit: 'ms',
    meaning: 'DNS lookup of the target before the payment is settled.',
    whenExceeded: '400 target_unresolvable, details.retryable true.',
  },
  answerWaitMs: {
    max: 1000,
    unit: 'ms',
    meaning: 'How long an answer is delayed so that its links work at once.',
    whenExceeded: 'It is sent without further delay; a link may then answer 503 for a short time.',
  },
  recentProofs: {
    min: 1,
    max: 50,
    default: 10,
    unit: 'proofs',
    meaning: 'limit of recent proofs.',
    whenExceeded: INVALID,
  },
  recentDecisions: {
    min: 1,
    max: 50,
    default: 10,
    unit: 'decisions',
    meaning: 'limit of recent decisions.',
    whenExceeded: INVALID,
  },
  monitoringWindowMs: {
    min: 60_000,
    max: 30 * 86_400_000,
    default: 86_400_000,
    unit: 'ms',
    meaning: 'windowMs of the monitoring summary.',
    whenExceeded: INVALID,
  },
  recentFailures: {
    max: 10,
    unit: 'failures',
    meaning: 'recentFailures of the monitoring summary.',
    whenExceeded: 'Older ones are left out.',
  },
  handoffActions: {
    min: 1,
    max: 12,
    unit: 'actions',
    meaning: 'actions of a browser handoff.',
    whenExceeded: INVALID_ACTIONS,
  },
  handoffTextLength: {
    max: 2000,
    unit: 'characters',
    meaning: 'description and text of an action.',
    whenExceeded: INVALID_ACTIONS,
  },
  handoffSelectorLength: {
    max: 500,
    unit: 'characters',
    meaning: 'selector of an action.',
    whenExceeded: INVALID_ACTIONS,
  },
  handoffValidMs: {
    max: 3_600_000,
    unit: 'ms',
    meaning: 'From createdAt to expiresAt of a package.',
    whenExceeded: 'Request a new one: packages are not stored.',
  },
  scheduleNextRuns: {
    max: 3,
    unit: 'runs',
    meaning: 'nextRuns of a preview.',
    whenExceeded: 'Later ones are not shown.',
  },
  scheduleTimezoneLength: {
    max: 64,
    unit: 'characters',
    meaning: 'timezone of a schedule.',
    whenExceeded: INVALID_SCHEDULE,
  },
  scheduleRunAtLength: {
    max: 64,
    unit: 'characters',
    meaning: 'runAt of a schedule.',
    whenExceeded: INVALID_SCHEDULE,
  },
  inFlightPerPayer: {
    max: 4,
    unit: 'calls',
    meaning: 'Concurrent paid calls of one payer, including unconfirmed payments.',
    whenExceeded: '429 too_many_in_flight.',
  },
  perMinutePerPayer: {
    max: 30,
    unit: 'calls a minute',
    meaning: 'Paid calls of one payer.',
    whenExceeded: RATE_LIMITED,
  },
  verifiesInFlight: {
    max: 16,
    unit: 'payments',
    meaning: 'Payments that one process verifies at the same time, over all payers.',
    whenExceeded: '429 too_many_in_flight.',
  },
  contractWalletPerMinute: {
    max: 5,
    unit: 'failed calls a minute',
    meaning: 'Failed paid calls from one client address for one contract wallet.',
    whenExceeded: RATE_LIMITED,
  },
  mismatchesPerPayment: {
    max: 10,
    unit: 'requests',
    meaning: `Requests that differ from the one that a completed payment was made for; afterwards the payment is accepted for that one only, for ${MISMATCH_BLOCK_MS} ms.`,
    whenExceeded: '409 payment_reused.',
  },
  decisionsPerMinute: {
    // Each decision is a permanent event.
    max: 10,
    unit: 'decisions a minute',
    meaning: 'Decisions of one client address.',
    whenExceeded: RATE_LIMITED,
  },
  decisionsPerDay: {
    max: 200,
    unit: 'decisions a day',
    meaning: 'Decisions of one client address.',
    whenExceeded: RATE_LIMITED,
  },
  authorizationSeconds: {
    // A facilitator refuses less (exact scheme, EVM); with a longer one a settlement could stay unconfirmed for longer.
    min: 6,
    max: 300,
    unit: 's',
    meaning: 'Time until the authorization of a payment expires (validBefore).',
    whenExceeded: '402 authorization_too_far_ahead, or authorization_expired at the minimum and below.',
  },
} as const satisfies Readonly<Record<string, Limit>>;

export const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** Limits that are a multiple of a configured limit. */
export const FACTORS = {
  /** The quota of a target host over all payers, in quotas of one payer: it prevents that one payer blocks a host cheaply. */
  targetQuotaOfAllPayers: 10,
  /** The rate limit of the canary and the MCP server, in rate limits of the other free routes. */
  generousRate: 10,
} as const;

/** Guarantees of the transparency log. */
export const TRANSPARENCY = {
  /** A receipt is in the log within this time (maximum merge delay). */
  mmdSeconds: 3600,
  /** A checkpoint is signed at least this often while receipts are added. */
  checkpointMs: 5000,
} as const;

export const PRICE = {
  usd: '0.003',
  display: '$0.003',
  scheme: 'exact',
  network: 'eip155:8453',
} as const;

export const SERVICE = { name: 'webhook-relay', version: '0.1.0' } as const;
