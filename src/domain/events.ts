// Every event that this service ever writes: schema, type, version and stream name.
// A released version is frozen (test/fixtures keeps one of each); a new shape is a new `v` with an upcaster.
import { type Static, type TObject, Type } from '@sinclair/typebox';

const strict = { additionalProperties: false };
const Nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([schema, Type.Null()]);
const V1 = Type.Literal(1);
/** UTC, RFC 3339, milliseconds. */
const Instant = Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$' });
const Text = Type.String();
/** A salted commitment: base64url(SHA-256(disclosure)), as in SD-JWT. */
const Commitment = Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' });
const Hex = Type.String({ pattern: '^[0-9a-f]{64}$' });
const Count = Type.Integer({ minimum: 0 });
const Millis = Nullable(Type.Number({ minimum: 0 }));

export const Method = Type.Union([
  Type.Literal('POST'),
  Type.Literal('PUT'),
  Type.Literal('PATCH'),
  Type.Literal('DELETE'),
]);
export type Method = Static<typeof Method>;

export const Mode = Type.Union([Type.Literal('demo'), Type.Literal('x402')]);
export type Mode = Static<typeof Mode>;

export const Route = Type.Union([Type.Literal('execute/webhook'), Type.Literal('execute/guided-webhook')]);
export type Route = Static<typeof Route>;

/** How far an attempt came before it ended. */
export const Phase = Type.Union([
  Type.Literal('dns'),
  Type.Literal('connect'),
  Type.Literal('tls'),
  Type.Literal('request'),
  Type.Literal('headers'),
  Type.Literal('body'),
]);
export type Phase = Static<typeof Phase>;

/** Whether the target may have got the request. */
export const Sent = Type.Union([Type.Literal('no'), Type.Literal('maybe'), Type.Literal('yes')]);
export type Sent = Static<typeof Sent>;

export const ErrorCategory = Type.Union([
  Type.Literal('timeout'),
  Type.Literal('dns_error'),
  Type.Literal('connect_error'),
  Type.Literal('tls_error'),
  Type.Literal('protocol_error'),
  Type.Literal('truncated_response'),
  Type.Literal('target_redirect'),
  Type.Literal('target_rate_limited'),
  Type.Literal('target_client_error'),
  Type.Literal('target_server_error'),
  Type.Literal('target_refused'),
  Type.Literal('interrupted_unknown'),
  Type.Literal('not_executed'),
]);
export type ErrorCategory = Static<typeof ErrorCategory>;

export const Timings = Type.Object(
  { dnsMs: Millis, connectMs: Millis, tlsMs: Millis, ttfbMs: Millis, totalMs: Type.Number({ minimum: 0 }) },
  strict,
);
export type Timings = Static<typeof Timings>;

/** Facts of a settled payment; never its signature. `amount`: atomic units of `asset`. */
export const PaymentFacts = Type.Object(
  {
    scheme: Text,
    network: Text,
    asset: Text,
    amount: Type.String({ pattern: '^\\d+$' }),
    payTo: Text,
    payer: Text,
    /** null where the chain has it but nobody could name it (evidence `nonce_consumed`). */
    transaction: Nullable(Text),
    payloadHash: Hex,
  },
  strict,
);
export type PaymentFacts = Static<typeof PaymentFacts>;

/** Commitments of the request, by the fixed names of the receipt. */
export const RequestCommitments = Type.Object(
  {
    target_url: Commitment,
    target_origin: Commitment,
    header_names: Commitment,
    request_body_sha256: Commitment,
    idempotency_key: Nullable(Commitment),
  },
  strict,
);
export type RequestCommitments = Static<typeof RequestCommitments>;

// ── job-<jobId> ─────────────────────────────────────────────────────────────────────────────────────────

/** Announces that attempt 1 is about to be sent. */
export const JobStarted = Type.Object(
  {
    v: V1,
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
  },
  strict,
);
export type JobStarted = Static<typeof JobStarted>;

export const AttemptMade = Type.Object(
  {
    v: V1,
    jobId: Text,
    number: Type.Integer({ minimum: 1, maximum: 3 }),
    startedAt: Instant,
    endedAt: Instant,
    phase: Phase,
    sent: Sent,
    outcome: Type.Union([Type.Literal('succeeded'), Type.Literal('failed')]),
    status: Nullable(Type.Integer({ minimum: 100, maximum: 999 })),
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
  },
  strict,
);
export type AttemptMade = Static<typeof AttemptMade>;

export const JobCompleted = Type.Object(
  {
    v: V1,
    jobId: Text,
    decisionId: Nullable(Text),
    status: Type.Union([Type.Literal('succeeded'), Type.Literal('failed')]),
    attempts: Type.Integer({ minimum: 0, maximum: 3 }),
    responseStatus: Nullable(Type.Integer({ minimum: 100, maximum: 999 })),
    errorCategory: Nullable(ErrorCategory),
    /** Bytes of the body as read, at most the cap; null where no response came. */
    responseBytes: Nullable(Count),
    truncated: Type.Boolean(),
    responseCommitment: Nullable(Commitment),
    /** `recovery` where another than the owner closed an interrupted job. */
    closedBy: Type.Union([Type.Literal('owner'), Type.Literal('recovery')]),
    completedAt: Instant,
  },
  strict,
);
export type JobCompleted = Static<typeof JobCompleted>;

export const ReceiptSigned = Type.Object(
  {
    v: V1,
    jobId: Text,
    decisionId: Nullable(Text),
    receiptId: Text,
    keyId: Text,
    /** Compact JWS (RFC 7515) over RFC 8785 bytes. */
    jws: Text,
    signedAt: Instant,
  },
  strict,
);
export type ReceiptSigned = Static<typeof ReceiptSigned>;

// ── payment-<sha256(network:asset:from:nonce)> ──────────────────────────────────────────────────────────

export const PaymentReserved = Type.Object(
  {
    v: V1,
    jobId: Text,
    fingerprint: Hex,
    scheme: Text,
    network: Text,
    asset: Text,
    amount: Type.String({ pattern: '^\\d+$' }),
    payTo: Text,
    payer: Text,
    nonce: Text,
    /** Unix seconds, decimal. */
    validBefore: Type.String({ pattern: '^\\d+$' }),
    payloadHash: Hex,
    /** The protocol version of the header that brought it first. */
    x402Version: Type.Union([Type.Literal(1), Type.Literal(2)]),
    owner: Text,
    reservedAt: Instant,
  },
  strict,
);
export type PaymentReserved = Static<typeof PaymentReserved>;

export const PaymentSettled = Type.Object(
  {
    v: V1,
    jobId: Text,
    transaction: Nullable(Text),
    evidence: Type.Union([
      Type.Literal('facilitator'),
      Type.Literal('nonce_consumed'),
      Type.Literal('chain'),
      Type.Literal('operator'),
    ]),
    settledAt: Instant,
  },
  strict,
);
export type PaymentSettled = Static<typeof PaymentSettled>;

/** The payment ended without money moving. `reason`: the facilitator's code or `unused_after_expiry`. */
export const PaymentRejected = Type.Object(
  {
    v: V1,
    jobId: Text,
    reason: Text,
    evidence: Type.Union([Type.Literal('facilitator'), Type.Literal('chain'), Type.Literal('operator')]),
    rejectedAt: Instant,
  },
  strict,
);
export type PaymentRejected = Static<typeof PaymentRejected>;

/** Given up before settlement because another job holds the key. */
export const PaymentReleased = Type.Object(
  { v: V1, jobId: Text, lostKeyTo: Text, releasedAt: Instant },
  strict,
);
export type PaymentReleased = Static<typeof PaymentReleased>;

/** A settle call whose answer says neither yes nor no. `cause`: a code, never a text of the facilitator. */
export const SettlementUnknown = Type.Object({ v: V1, jobId: Text, cause: Text, unknownAt: Instant }, strict);
export type SettlementUnknown = Static<typeof SettlementUnknown>;

/** A retry's claim, appended before it acts. */
export const SettlementRetried = Type.Object({ v: V1, jobId: Text, owner: Text, retriedAt: Instant }, strict);
export type SettlementRetried = Static<typeof SettlementRetried>;

// ── claim-<HMAC(secret, payer, key)> ────────────────────────────────────────────────────────────────────

export const KeyClaimed = Type.Object(
  { v: V1, jobId: Text, fingerprint: Hex, paymentStream: Nullable(Text), claimedAt: Instant },
  strict,
);
export type KeyClaimed = Static<typeof KeyClaimed>;

export const KeyReleased = Type.Object(
  {
    v: V1,
    jobId: Text,
    reason: Type.Union([
      Type.Literal('payment_rejected'),
      Type.Literal('payment_released'),
      Type.Literal('retention_over'),
    ]),
    releasedAt: Instant,
  },
  strict,
);
export type KeyReleased = Static<typeof KeyReleased>;

// ── decision-<decisionId> ───────────────────────────────────────────────────────────────────────────────

const Reason = Type.Object({ code: Text, message: Text }, strict);

/** Enough to replay the recommendation; never the url, headers or body of the action. */
export const DecisionRecorded = Type.Object(
  {
    v: V1,
    decisionId: Text,
    recommendation: Type.Union([
      Type.Literal('pay_and_execute'),
      Type.Literal('manual_review'),
      Type.Literal('do_not_pay'),
    ]),
    confidence: Type.Union([Type.Literal('high'), Type.Literal('medium')]),
    blockingIssues: Type.Array(Reason),
    warnings: Type.Array(Reason),
    reasons: Type.Array(Reason),
    actionHash: Hex,
    policyHash: Hex,
    buyerPolicy: Type.Object(
      {
        maxPriceUsd: Nullable(Text),
        requireReceipt: Type.Boolean(),
        requirePolicyPass: Type.Boolean(),
        requireIdempotencyKey: Type.Boolean(),
        minTrustScore: Type.Number(),
        allowedNetworks: Nullable(Type.Array(Text)),
      },
      strict,
    ),
    facts: Type.Object(
      {
        price: Text,
        network: Text,
        payTo: Nullable(Text),
        trustScore: Nullable(Type.Number()),
        recentFailureRate: Type.Number(),
        recentFinishedJobs: Count,
        /** `allowed` or the code of the refusal. */
        policyVerdict: Text,
        method: Method,
        idempotencyKeyPresent: Type.Boolean(),
        /** How many of the caller's headers will be stripped. */
        strippedHeaders: Count,
      },
      strict,
    ),
    createdAt: Instant,
    expiresAt: Instant,
  },
  strict,
);
export type DecisionRecorded = Static<typeof DecisionRecorded>;

// ── keys-relay ──────────────────────────────────────────────────────────────────────────────────────────

export const KeyPurpose = Type.Union([Type.Literal('receipt'), Type.Literal('checkpoint')]);
export type KeyPurpose = Static<typeof KeyPurpose>;

export const KeyActivated = Type.Object(
  {
    v: V1,
    /** RFC 7638 thumbprint. */
    keyId: Commitment,
    purpose: KeyPurpose,
    alg: Type.Literal('EdDSA'),
    /** The public key: 32 bytes, base64url (RFC 8037). */
    x: Commitment,
    /** HMAC of a constant under the HMAC secret: a process with another secret refuses to start. */
    secretCheck: Hex,
    activatedAt: Instant,
  },
  strict,
);
export type KeyActivated = Static<typeof KeyActivated>;

export const KeyRetired = Type.Object(
  {
    v: V1,
    keyId: Commitment,
    reason: Type.Union([Type.Literal('rotated'), Type.Literal('retired'), Type.Literal('compromised')]),
    /** No receipt issued later verifies. */
    effectiveAt: Instant,
    /** From when on nothing signed by it is trusted; null unless compromised. */
    compromisedAt: Nullable(Instant),
    retiredAt: Instant,
  },
  strict,
);
export type KeyRetired = Static<typeof KeyRetired>;

// ── log-receipts ────────────────────────────────────────────────────────────────────────────────────────

/** A signed note over the receipt log's tree head (C2SP tlog-checkpoint). */
export const CheckpointSigned = Type.Object(
  {
    v: V1,
    origin: Text,
    /** Leaves, decimal. */
    size: Type.String({ pattern: '^\\d+$' }),
    /** RFC 6962 root, base64. */
    root: Text,
    keyId: Commitment,
    note: Text,
    signedAt: Instant,
  },
  strict,
);
export type CheckpointSigned = Static<typeof CheckpointSigned>;

export const EVENT_SCHEMAS = {
  JobStarted,
  AttemptMade,
  JobCompleted,
  ReceiptSigned,
  PaymentReserved,
  PaymentSettled,
  PaymentRejected,
  PaymentReleased,
  SettlementUnknown,
  SettlementRetried,
  KeyClaimed,
  KeyReleased,
  DecisionRecorded,
  KeyActivated,
  KeyRetired,
  CheckpointSigned,
} satisfies Record<string, TObject>;

export type EventType = keyof typeof EVENT_SCHEMAS;
export type EventOf<T extends EventType> = {
  readonly [K in T]: { readonly type: K; readonly data: Static<(typeof EVENT_SCHEMAS)[K]> };
}[T];
export type DomainEvent = EventOf<EventType>;
export type JobEvent = EventOf<'JobStarted' | 'AttemptMade' | 'JobCompleted' | 'ReceiptSigned'>;
export type PaymentEvent = EventOf<
  | 'PaymentReserved'
  | 'PaymentSettled'
  | 'PaymentRejected'
  | 'PaymentReleased'
  | 'SettlementUnknown'
  | 'SettlementRetried'
>;
export type ClaimEvent = EventOf<'KeyClaimed' | 'KeyReleased'>;
export type KeyEvent = EventOf<'KeyActivated' | 'KeyRetired'>;

export const STREAM = {
  job: (jobId: string) => `job-${jobId}`,
  decision: (decisionId: string) => `decision-${decisionId}`,
  /** `hash`: lower-case hex. */
  payment: (hash: string) => `payment-${hash}`,
  claim: (hash: string) => `claim-${hash}`,
  keys: 'keys-relay',
  receiptLog: 'log-receipts',
} as const;
