// Every limit that a caller can reach, declared once: the enforced number, its unit, its meaning and the answer when it is
// exceeded. Schemas, checks and documents read this table; a name is the limit's name in the capabilities document.

/** `default`: set if the caller may omit the value. */
type Range = { readonly min?: number; readonly max: number; readonly default?: number };

export type Limit = Range & {
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

/** Durations that do not belong to a single request. */
export const TIMES = {
  /** An idempotency key becomes reusable this long after the completion of its job. */
  idempotencyRetentionMs: 7 * 86_400_000,
  decisionValidMs: 24 * 3_600_000,
  /** A payment that reached `mismatchesPerPayment` is accepted only for its own request for this long. */
  mismatchBlockMs: 3_600_000,
  /** The lease of a job is its longest possible run plus this. */
  leaseMarginMs: 15_000,
  /** A job is recovered when its stream has not changed for its lease plus this. */
  recoveryGraceMs: 30_000,
  /** The longest that a caller waits for an execution; the job itself continues. */
  responseDeadlineMs: 110_000,
} as const;

/** A row of the table. */
const limit = <const R extends Range>(unit: string, range: R, meaning: string, whenExceeded = INVALID) => ({
  ...range,
  unit,
  meaning,
  whenExceeded,
});

export const LIMITS = {
  urlLength: limit('characters', { max: 4096 }, 'Length of url.'),
  retryAttempts: limit(
    'attempts',
    { min: 1, max: 3, default: 1 },
    'retry.attempts: attempts of one call, the first included.',
  ),
  retryBackoffMs: limit(
    'ms',
    { min: 0, max: 5000, default: 250 },
    'retry.backoffMs: base of the exponential backoff with full jitter.',
  ),
  retryWaitMs: limit(
    'ms',
    { max: 5000 },
    'Longest wait between two attempts, and the longest Retry-After of a target that is honoured.',
    'A longer Retry-After ends the job as failed.',
  ),
  timeoutMs: limit(
    'ms',
    { min: 1000, max: 12_000, default: 12_000 },
    'timeoutMs: one attempt from its DNS lookup to the last byte read.',
    `${INVALID} For a slower target, errorCategory is timeout.`,
  ),
  idempotencyKeyLength: limit('characters', { min: 1, max: 160 }, 'Length of idempotencyKey.'),
  requestBodyBytes: limit(
    'bytes',
    { max: BODY_BYTES },
    'The complete JSON body of a call to this service.',
    '413 body_too_large.',
  ),
  requestBodyArrivalMs: limit(
    'ms',
    { max: 10_000 },
    'Time in which that body must arrive.',
    '408 body_timeout.',
  ),
  jsonDepth: limit('levels', { max: JSON_LEVELS }, 'Nesting of that body.'),
  // The arguments of a tool and the message around them, payment included.
  mcpMessageBytes: limit(
    'bytes',
    { max: BODY_BYTES + 32 * KIB },
    'A complete MCP message, payment included.',
    '413 body_too_large.',
  ),
  mcpMessageDepth: limit('levels', { max: JSON_LEVELS + 2 }, 'Nesting of an MCP message.'),
  targetHeaders: limit('headers', { max: 64 }, 'Number of headers.'),
  targetHeaderBytes: limit('bytes', { max: 16 * KIB }, 'Names and values of all headers.'),
  decideBodyBytes: limit(
    'bytes',
    { max: 16 * KIB },
    'The complete JSON body of a decision.',
    '413 body_too_large.',
  ),
  responseBodyBytes: limit(
    'bytes',
    { max: 64 * KIB },
    'How much of the answer of the target is read and hashed. It is never stored, and returned only to a caller that asks for it.',
    'Reading stops; the receipt states truncated: true.',
  ),
  responseHeaderBytes: limit(
    'bytes',
    { max: 16 * KIB },
    'Headers of the answer of the target.',
    'errorCategory protocol_error.',
  ),
  policyDnsMs: limit(
    'ms',
    { max: 2000 },
    'DNS lookup of the target before the payment is settled.',
    '400 target_unresolvable, details.retryable true.',
  ),
  answerWaitMs: limit(
    'ms',
    { max: 1000 },
    'How long an answer is delayed so that its links work at once.',
    'It is sent without further delay; a link may then answer 503 for a short time.',
  ),
  readsBesideExecutions: limit(
    'reads a second',
    { max: 300 },
    'Reads of all clients together, documents and pages included, that one process answers while it executes calls. More of them wait.',
    'The read waits.',
  ),
  readWaitMs: limit('ms', { max: 2000 }, 'How long a read waits for its turn.', RATE_LIMITED),
  recentProofs: limit('proofs', { min: 1, max: 50, default: 10 }, 'limit of recent proofs.'),
  recentDecisions: limit('decisions', { min: 1, max: 50, default: 10 }, 'limit of recent decisions.'),
  monitoringWindowMs: limit(
    'ms',
    { min: 60_000, max: 30 * 86_400_000, default: 86_400_000 },
    'windowMs of the monitoring summary.',
  ),
  recentFailures: limit(
    'failures',
    { max: 10 },
    'recentFailures of the monitoring summary.',
    'Older ones are left out.',
  ),
  handoffActions: limit('actions', { min: 1, max: 12 }, 'actions of a browser handoff.', INVALID_ACTIONS),
  handoffTextLength: limit(
    'characters',
    { max: 2000 },
    'description and text of an action.',
    INVALID_ACTIONS,
  ),
  handoffSelectorLength: limit('characters', { max: 500 }, 'selector of an action.', INVALID_ACTIONS),
  handoffValidMs: limit(
    'ms',
    { max: 3_600_000 },
    'From createdAt to expiresAt of a package.',
    'Request a new one: packages are not stored.',
  ),
  scheduleNextRuns: limit('runs', { max: 3 }, 'nextRuns of a preview.', 'Later ones are not shown.'),
  scheduleTimezoneLength: limit('characters', { max: 64 }, 'timezone of a schedule.', INVALID_SCHEDULE),
  scheduleRunAtLength: limit('characters', { max: 64 }, 'runAt of a schedule.', INVALID_SCHEDULE),
  scheduleEveryMinutes: limit(
    'minutes',
    { min: 1, max: 10_080 },
    'everyMinutes of an interval. Runs of one schedule are at least 60 s apart.',
    INVALID_SCHEDULE,
  ),
  inFlightPerPayer: limit(
    'calls',
    { max: 4 },
    'Concurrent paid calls of one payer, including unconfirmed payments.',
    '429 too_many_in_flight.',
  ),
  perMinutePerPayer: limit('calls a minute', { max: 30 }, 'Paid calls of one payer.', RATE_LIMITED),
  verifiesInFlight: limit(
    'payments',
    { max: 16 },
    'Payments that one process verifies at the same time, over all payers.',
    'The call waits: see verifiesWaiting.',
  ),
  verifiesPerClient: limit(
    'payments',
    { max: 2 },
    'Payments of one client address (IPv6: its /64) that one process verifies at the same time.',
    'The call waits: see verifiesWaiting.',
  ),
  verifiesPerPayer: limit(
    'payments',
    { max: 1 },
    'Payments of one payer that one process verifies at the same time.',
    'The call waits: see verifiesWaiting.',
  ),
  verifiesWaiting: limit(
    'payments',
    { max: 128 },
    'Payments that wait in one process to be verified. Client addresses are served in turn.',
    '429 too_many_in_flight: for the newest call of the address with the most calls waiting.',
  ),
  verifyWaitMs: limit(
    'ms',
    { max: 10_000 },
    'How long a payment waits to be verified.',
    '429 too_many_in_flight; nothing was charged.',
  ),
  contractWalletPerMinute: limit(
    'failed calls a minute',
    { max: 5 },
    'Failed paid calls from one client address for one contract wallet.',
    RATE_LIMITED,
  ),
  walletQuestionsPerMinute: limit(
    'addresses a minute',
    { max: 30 },
    'Payers that did not sign with their own key, of which the node is asked for one client address whether they are contracts.',
    'The node is not asked: the facilitator decides.',
  ),
  mismatchesPerPayment: limit(
    'requests',
    { max: 10 },
    `Requests that differ from the one that a completed payment was made for; afterwards the payment is accepted for that one only, for ${TIMES.mismatchBlockMs} ms.`,
    '409 payment_reused.',
  ),
  // Each decision is a permanent event.
  decisionsPerMinute: limit(
    'decisions a minute',
    { max: 10 },
    'Decisions of one client address.',
    RATE_LIMITED,
  ),
  decisionsPerDay: limit('decisions a day', { max: 200 }, 'Decisions of one client address.', RATE_LIMITED),
  freeLookUpsPerClient: limit(
    'look-ups',
    { max: 32 },
    'DNS look-ups of one client address that free requests (decisions, policy checks, handoffs, previews) have under way in one process.',
    '429 too_many_in_flight.',
  ),
  // Each has written up to 4,000 bytes of permanent events.
  unchargedPerDay: limit(
    'payments a day',
    { max: 200 },
    'Payments of one client address (IPv6: of its /64) that were taken and then not charged: refused when they were settled, or given back for a key that another call holds; runs of schedules that were cancelled or could not be charged, too. Those of unknown fate count until it is known.',
    RATE_LIMITED,
  ),
  // A facilitator refuses less (exact scheme, EVM); with a longer one a settlement could stay unconfirmed for longer.
  authorizationSeconds: limit(
    's',
    { min: 6, max: 300 },
    'Time until the authorization of a payment expires (validBefore).',
    '402 authorization_too_far_ahead, or authorization_expired at the minimum and below.',
  ),
} as const satisfies Readonly<Record<string, Limit>>;

export const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** Limits that are a multiple of a configured limit. */
export const FACTORS = {
  /** The quota of a target host over all payers, in quotas of one payer: it prevents that one payer blocks a host cheaply. */
  targetQuotaOfAllPayers: 10,
  /** The rate limit of the canary and the MCP server, in rate limits of the other free routes. */
  generousRate: 10,
  /** Of the reads a minute, so many at once: one tenth. */
  readBurst: 10,
  /** At once at least: a page and all that it loads. */
  leastReadBurst: 20,
} as const;

const USD = '0.003';

export const PRICE = {
  usd: USD,
  display: `$${USD}`,
  scheme: 'exact',
  network: 'eip155:8453',
} as const;

export const SERVICE = { name: 'webhook-relay', version: '0.1.0' } as const;
