// The capabilities: what the service does not do, its rules, and every limit that a caller can reach.
import { addressOf, openDocument, shownTerms } from '#src/discovery/document.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { ASK_FOR_RESPONSE, DONE_WHEN, FAILED_VERIFIES, TEST_TARGET } from '#src/discovery/guidance.ts';
import { pathTemplate, ROUTES } from '#src/discovery/routes.ts';
import { STRIPPED } from '#src/domain/destination/headers.ts';
import { RETRIED_CATEGORIES, RETRIED_STATUSES } from '#src/domain/job/retry.ts';
import { FACTORS, LIMITS, type Limit, METHODS, TIMES } from '#src/domain/limits.ts';
import { SCHEDULE_LIMITS } from '#src/domain/schedule/limits.ts';
import { TRANSPARENCY } from '#src/domain/transparency/checkpoint.ts';
import { policyPreset } from './catalog.ts';

export const capabilities = openDocument([ROUTES.capabilities], (facts) => ({
  mode: facts.mode,
  payment: shownTerms(facts),
  doesNot: [facts.returnsResponses ? KEEPS_NO_ANSWER : RETURNS_NO_ANSWER, ...DOES_NOT].map((text) =>
    facts.schedules === undefined ? text : text.replace(UNSCHEDULED, 'E'),
  ),
  execution: {
    methods: [...METHODS],
    scheme: 'https',
    redirectsFollowed: false,
    responseBodyReturned: facts.returnsResponses ? ASK_FOR_RESPONSE : false,
    responseHeadersReturned: facts.returnsResponses ? facts.returnedHeaders : [],
    strippedHeaders: [...STRIPPED],
    rules: EXECUTION_RULES,
  },
  retries: {
    retriedStatuses: [...RETRIED_STATUSES],
    retriedErrorCategories: [...RETRIED_CATEGORIES],
    rules: RETRY_RULES,
  },
  targetPolicy: {
    mode: facts.policyMode,
    preset: policyPreset(facts.policyMode),
    quota: facts.targetQuota,
    rules: TARGET_RULES,
  },
  idempotency: { keyFreesAfterMs: TIMES.idempotencyRetentionMs, rules: IDEMPOTENCY_RULES },
  decisions: { validForMs: TIMES.decisionValidMs, rules: DECISION_RULES },
  receipts: {
    format: 'JWS compact (RFC 7515) over canonical JSON (RFC 8785)',
    algorithm: 'EdDSA (Ed25519)',
    keys: addressOf(facts, ROUTES.jwks),
    did: addressOf(facts, ROUTES.did),
    rules: RECEIPT_RULES,
  },
  transparencyLog: {
    format: 'C2SP tlog-tiles, tlog-checkpoint and tlog-proof over a Merkle tree of RFC 6962',
    ...TRANSPARENCY,
    witnessing: facts.witnesses === null ? 'unwitnessed' : 'witnessed',
    ...(facts.witnesses === null ? {} : { witnesses: facts.witnesses }),
    checkpoint: addressOf(facts, ROUTES.logCheckpoint),
    key: addressOf(facts, ROUTES.logKey),
    tiles: addressOf(facts, ROUTES.logTile),
    proof: addressOf(facts, ROUTES.logProof),
    consistency: addressOf(facts, ROUTES.logConsistency),
    rules: LOG_RULES,
  },
  retention: {
    jobsDays: facts.retentionDays.jobs,
    receiptsDays: facts.retentionDays.receipts,
    decisionsDays: facts.retentionDays.receipts,
    rules: RETENTION_RULES,
  },
  limits: Object.entries<Limit>({
    ...LIMITS,
    ...configured(facts),
    ...(facts.schedules && SCHEDULE_LIMITS),
  }).map(([name, limit]) => ({
    name,
    ...limit,
  })),
}));

const configured = (facts: Facts) => ({
  answerMs: {
    max: TIMES.responseDeadlineMs + LIMITS.answerWaitMs.max,
    unit: 'ms',
    meaning: 'The latest time at which an execution is answered. Set the timeout of your client above it.',
    whenExceeded:
      '503 event_log_unavailable. The call may continue: repeat the same request with the same payment header.',
  },
  inFlight: {
    max: facts.maxInFlight,
    unit: 'calls',
    meaning: 'Executions at the same time by one process, over all payers.',
    whenExceeded: '429 too_many_in_flight.',
  },
  perMinutePerClientAddress: {
    max: facts.rateLimitPerMinute,
    unit: 'calls a minute',
    meaning:
      'Calls of one client address (IPv6: of its /64) to the paid routes together; policy check, handoff and schedule preview are each counted separately, and ten times as many messages to /mcp and calls of the test target.',
    whenExceeded: '429 rate_limited, with Retry-After and RateLimit headers.',
  },
  readsPerMinutePerClientAddress: {
    max: facts.readsPerMinute,
    unit: 'reads a minute',
    meaning: `Reads of one client address (IPv6: of its /64) from one process: records, verification, proofs, monitoring, trust, the transparency log, and the pages and tools that show them; one tenth of them at once, at least ${FACTORS.leastReadBurst}. Documents, public keys, health and the test target are not counted, nor are callers on the machine of the relay.`,
    whenExceeded: '429 rate_limited, after a second, with Retry-After and RateLimit headers.',
  },
});

const UNSCHEDULED = 'Schedule or repeat paid calls later, or e';

const RETURNS_NO_ANSWER =
  'Return or keep the body or headers of the answer of the target: status, size and a commitment only.';
const KEEPS_NO_ANSWER = `Keep the body or headers of the answer of the target: a call with the header ${ASK_FOR_RESPONSE} gets them in its first answer alone, in \`response\`; status, size and a commitment are recorded.`;

const DOES_NOT = [
  'Run several steps, conditions or any orchestration: one call is one request.',
  'Send GET, HEAD or OPTIONS, speak other protocols than HTTPS, or follow redirects.',
  `Call localhost, private networks, cloud metadata or itself, except its test target and what EGRESS_ALLOW_CIDRS exempts (development only). ${TEST_TARGET}`,
  'Schedule or repeat paid calls later, or execute browser steps.',
  'Store long-lived secrets, or hold funds, accounts or API keys of callers.',
  'Send anything again after a crash or a lost answer: an interrupted call remains failed.',
  'Prove what the target did: a receipt states, under signature, what the relay sent and what it received.',
];

const EXECUTION_RULES = [
  'Without a body none is sent; null is sent as null. The body is sent as JSON, with content-type application/json unless you set one.',
  'Host, Content-Length and Via are set by the relay; hop-by-hop, proxy, cloud metadata and payment headers are stripped (a name with * means every name with that prefix).',
  'If the target answers the last attempt with 2xx, the answer is 200. Otherwise it is 502 with the complete execution response.',
  'Every attempt resolves the host again, checks all of its addresses and connects to one of them: in order, IPv4 and IPv6 alternately, until one accepts the connection. TLS is 1.2 or newer, with a verified certificate.',
  'The answer of the target is read strictly (RFC 9112): lines that end without a carriage return, a blank before a colon, two lengths, a transfer coding other than chunked are a protocol_error. A folded header line is read as one line.',
  'The target receives webhook-id, webhook-timestamp and webhook-signature (Standard Webhooks, Ed25519) and Idempotency-Key, the same id on every attempt; yours are forwarded instead where you set them.',
];

const RETRY_RULES = [
  'Nothing is retried unless retry.attempts is above 1.',
  'Redirects, other statuses, certificate errors, protocol errors and refusals are never retried.',
  'The wait is random up to backoffMs × 2^(attempt - 1); a Retry-After of the target is the minimum wait.',
  'A response header webhook-delivery: abort-message ends the job at once.',
  'All attempts of one call are charged once.',
];

const TARGET_RULES = [
  'Absolute https URL without user name or password, a public host name or address, and a port that neither the Fetch standard nor this deployment blocks.',
  'A name with any non-public address is refused; so are localhost, single-label and reserved internal names.',
  'Policy check, decision and execution apply the same rules.',
  `The quota is of one payer and one target host; all payers together have ${FACTORS.targetQuotaOfAllPayers} times as many calls to it.`,
  'A deployment for development can exempt address ranges: its health document says egressExemption true, and so does each receipt concerned.',
];

const IDEMPOTENCY_RULES = [
  'A key is scoped to its payer and applies to both paid routes.',
  'Same key and same request: the stored result with its first status, idempotentReplay true, no charge, nothing sent.',
  'Same key and another request: 409 idempotency_conflict. While the first call is running: 409 idempotency_in_progress.',
  'Same key and same request with a new payment, before the call was made: the first payment is looked up. If it is paid, its call is made and the new payment is not taken; if it can never be paid, the new payment is taken; until that is known, or while it is being refunded, 409 idempotency_in_progress with details.paymentState (reserved, unconfirmed or refunding) and Retry-After.',
  'Every field is part of the request: url, method, headers, body, retry, timeoutMs, key, route and decision.',
  'A payment is a key as well: presented again it replays or resumes its call; with another request it is 409 payment_reused. It never becomes reusable.',
  'The id of the x402 extension payment-identifier in a payment (version 2, also over MCP) is the key of a request to the execute route that has no idempotencyKey. A guided request without one has its decision as the key.',
  'In demo mode all callers are one payer: use keys that no other caller uses.',
];

const DECISION_RULES = [
  'Deterministic: the same action, policy and facts give the same recommendation.',
  'pay_and_execute: no warning and no blocking issue. manual_review: warnings only. do_not_pay: at least one blocking issue.',
  'A decision approves one execution per payer, of exactly the action it was made for.',
];

const RECEIPT_RULES = [
  `An action counts as done only when ${DONE_WHEN}. ${FAILED_VERIFIES}`,
  'It contains job, method, every attempt with phase, outcome and whether the request was sent, the outcome, the payment, and a hash chain over the recorded events.',
  'It contains URL, header names, bodies and key as salted commitments; the disclosures of the paid answer open them.',
  'A receipt is signed for every job that was started, including failed and interrupted ones.',
];

const RETENTION_RULES = [
  'Reads of a job answer 404 after its retention; its receipt still verifies, with the checks that need no job.',
  'Receipts are never purged from the event log: after their retention they are answered and verified from it.',
  'Repeats of a payment are always answered from the event log, also after retention; repeats of a key are while the key is in use.',
  'Keep receipt.jws and disclosures yourself: with the published keys they verify without this service.',
];

const LOG_RULES = [
  'Every receipt and every change of keys is a leaf of one tree that only grows: the leaf of a receipt is the SHA-256 of its JWS, which reveals neither payers nor targets.',
  `A receipt is in a checkpoint at most mmdSeconds after its issue, usually within checkpointMs. Until then the check receipt_logged is ok with details.pending true; after that, it fails if the receipt is not included.`,
  'Checkpoints are signed by a separate key, of purpose checkpoint in the key set. Keep one: if a later one is not consistent with it, the history was rewritten.',
  'Unwitnessed: no witness cosigns checkpoints yet. A relay that shows one log to you and another to others is detected only by comparing checkpoints, and a wrong time of issue is not detected.',
  `It proves that a receipt was neither removed nor replaced; it does not prove what the target did. A relay without a checkpoint key has no log: ${pathTemplate(ROUTES.logCheckpoint.path)} is 404 there, and reports have no check receipt_logged.`,
];
