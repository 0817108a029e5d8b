// The numbers that the service promises: one definition each; schemas, documents and guards read them here.

export const LIMITS = {
  methods: ['POST', 'PUT', 'PATCH', 'DELETE'],
  urlMaxLength: 4096,
  idempotencyKeyMinLength: 1,
  idempotencyKeyMaxLength: 160,
  attempts: { min: 1, max: 3, default: 1 },
  backoffMs: { min: 0, max: 5000, default: 250 },
  timeoutMs: { min: 1000, max: 12000, default: 12000 },
  /** The longest wait between two attempts, and the longest Retry-After that is honoured. */
  retryWaitMaxMs: 5000,
  requestBodyBytes: 128 * 1024,
  requestBodyArrivalMs: 10_000,
  jsonDepth: 64,
  /** What an MCP message may have around the arguments of its tool: bytes, the payment's among them, and levels. */
  mcpEnvelope: { bytes: 32 * 1024, levels: 2 },
  targetHeaders: { count: 64, bytes: 16 * 1024 },
  responseBodyBytes: 64 * 1024,
  responseHeaderBytes: 16 * 1024,
  policyDnsMs: 2000,
  decideBodyBytes: 16 * 1024,
  /** Of one client address: each decision is an event for ever. */
  decidesPerMinute: 10,
  decidesPerDay: 200,
  /** How long a decision approves. */
  decisionValidMs: 24 * 3_600_000,
  decisions: { min: 1, max: 50, default: 10 },
  proofs: { min: 1, max: 50, default: 10 },
  monitoringWindowMs: { min: 60_000, max: 30 * 86_400_000, default: 86_400_000 },
  recentFailures: 10,
  /** A key frees this long after its job's completion. */
  idempotencyRetentionMs: 7 * 86_400_000,
  /** Added to the longest possible run of a job to make its lease. */
  leaseMarginMs: 15_000,
  /** A recoverer watches a stream unchanged for the lease plus this. */
  recoveryGraceMs: 30_000,
  /** The longest that a caller waits for the answer to an execution; the job itself goes on. */
  answerBudgetMs: 110_000,
  verifiesInFlight: 16,
  jobsInFlightPerPayer: 4,
  jobsPerMinutePerPayer: 30,
  /** Per target host over all payers, in quotas of one payer: nobody can shut a host for the others with cents. */
  targetQuotaAllPayersFactor: 10,
  /**
   * How far ahead of now an authorization ends. A facilitator refuses less (exact scheme, EVM); a longer one would hold
   * an unknown settlement open for as long.
   */
  authorizationSeconds: { min: 6, max: 300 },
  /** Calls a minute of one address whose signature only its contract could judge. */
  contractWalletPerMinute: 5,
  /** After so many requests that a payment was not made for, it is not compared with any for so long. */
  mismatches: { max: 10, closedMs: 3_600_000 },
  /** How long an answer waits for the read models before it goes out without them. */
  caughtUpWaitMs: 1000,
  handoff: { actions: { min: 1, max: 12 }, textMaxLength: 2000, selectorMaxLength: 500, validMs: 3_600_000 },
  schedule: { nextRuns: 3, timezoneMaxLength: 64, runAtMaxLength: 64 },
  /** How often one client address may call the canary, and how often MCP, in calls of the other free routes. */
  generousRateFactor: 10,
} as const;

/** The transparency log's promises. */
export const TRANSPARENCY = {
  /** Within it a receipt is in the log, or the relay has broken its word (maximum merge delay). */
  mmdSeconds: 3600,
  /** A checkpoint is signed at least this often while receipts come. */
  checkpointMs: 5000,
} as const;

export const PRICE = {
  usd: '0.003',
  display: '$0.003',
  scheme: 'exact',
  network: 'eip155:8453',
} as const;

export const SERVICE = { name: 'webhook-relay', version: '0.1.0' } as const;
