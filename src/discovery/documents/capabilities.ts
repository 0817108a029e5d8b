// The capabilities: what the service does and does not do, by which rules, and every limit a caller can meet.

import { DONE_WHEN, FAILED_VERIFIES } from '#src/discovery/completion.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { pathTemplate, type RouteFacts } from '#src/discovery/route-facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { testTarget } from '#src/discovery/test-target.ts';
import { transparencyLogTold } from '#src/discovery/transparency-log.ts';
import { STRIPPED } from '#src/domain/destination/headers.ts';
import { RETRIED_CATEGORIES, RETRIED_STATUSES } from '#src/domain/job/retry.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { limitsTold } from './capability-limits.ts';
import { addressOf, heading, isOwnTarget, paymentTerms } from './document-parts.ts';
import { policyPreset } from './policy-modes.ts';

export const capabilitiesDocument = (facts: Facts) => ({
  ...heading(facts),
  mode: facts.mode,
  payment: paymentTerms(facts),
  does: DOES,
  doesNot: doesNot(facts),
  execution: EXECUTION,
  retries: {
    retriedStatuses: RETRIED_STATUSES,
    retriedErrorCategories: RETRIED_CATEGORIES,
    rules: RETRY_RULES,
  },
  targetPolicy: {
    mode: facts.policyMode,
    preset: policyPreset(facts.policyMode),
    quota: facts.targetQuota,
    rules: TARGET_RULES,
  },
  idempotency: { keyFreesAfterMs: LIMITS.idempotencyRetentionMs, rules: IDEMPOTENCY_RULES },
  decisions: { validForMs: LIMITS.decisionValidMs, rules: DECISION_RULES },
  receipts: {
    format: 'JWS compact (RFC 7515) over canonical JSON (RFC 8785)',
    algorithm: 'EdDSA (Ed25519)',
    keys: addressOf(facts, ROUTES.jwks),
    did: addressOf(facts, ROUTES.did),
    rules: RECEIPT_RULES,
  },
  transparencyLog: transparencyLogTold(facts),
  retention: {
    jobsDays: facts.retentionDays.jobs,
    receiptsDays: facts.retentionDays.receipts,
    decisionsDays: facts.retentionDays.receipts,
    rules: RETENTION_RULES,
  },
  limits: limitsTold(facts),
  surfaces: Object.values<RouteFacts>(ROUTES)
    .filter(({ listed }) => listed)
    .map(({ method, path, paid, summary }) => ({ method, path: pathTemplate(path), paid, summary })),
});

const DOES = [
  'Executes one outbound HTTPS request at once and answers when it is over, with a job and a signed receipt.',
  'Decides beforehand, free, whether an action fits a buyer policy, and records the decision with its facts.',
  'Verifies receipts and jobs, and lets anyone verify a receipt offline with the published keys.',
  'Shows recent proofs, decisions, monitoring and trust publicly, redacted.',
  'Keeps a transparency log: public, append-only, of the hashes of all receipts, with proofs that anyone can check; unwitnessed yet.',
  'Signs every outbound call, so that the target can tell who called.',
  'Packages browser steps and previews schedules, free.',
  'Speaks MCP: the same operations as tools, paid the same way.',
] as const;

const doesNot = (facts: Facts): readonly string[] => [
  'Run several steps, conditions or any orchestration: one call is one request.',
  'Send GET, HEAD or OPTIONS, speak other protocols than HTTPS, or follow redirects.',
  'Return or keep the body or headers of the answer of the target: status, size and a commitment only.',
  `Call localhost, private networks, cloud metadata or itself${isOwnTarget(facts) ? ', but for its test target' : ''}. ${testTarget(facts)}`,
  'Schedule or repeat paid calls later, or execute browser steps.',
  'Store long-lived secrets, or hold funds, accounts or API keys of callers.',
  'Send anything again after a crash or a lost answer: what was interrupted stays failed.',
  'Prove what the target did: a receipt says, under signature, what the relay sent and was answered.',
];

const EXECUTION = {
  methods: LIMITS.methods,
  scheme: 'https',
  redirectsFollowed: false,
  responseBodyReturned: false,
  strippedHeaders: STRIPPED,
  rules: [
    'An absent body sends none; null is sent as null. The body goes out as JSON, with content-type application/json unless you set one.',
    'Host, Content-Length and Via are set by the relay; hop-by-hop, proxy, cloud metadata and payment headers are stripped (a name with * stands for every name that begins so).',
    'Success is a 2xx of the last attempt: 200. Anything else of the target is 502 with the whole execution response.',
    'Every attempt looks the host up again, checks the address and connects to exactly that one, with TLS 1.2 or newer and a verified certificate.',
    'The target gets webhook-id, webhook-timestamp and webhook-signature (Standard Webhooks, Ed25519) and Idempotency-Key, the same id on every attempt; yours are forwarded instead where you set them.',
  ],
} as const;

const RETRY_RULES = [
  'Nothing is retried unless retry.attempts is above 1.',
  'Redirects, other statuses, certificate errors, protocol errors and refusals are never retried.',
  'The wait is random up to backoffMs × 2^(attempt - 1); a Retry-After of the target is the least wait.',
  'A response header webhook-delivery: abort-message ends the job at once.',
  'All attempts of one call are one charge.',
] as const;

const TARGET_RULES = [
  'Absolute https URL without user name or password, a public host name or address, and a port that neither the Fetch standard nor this deployment blocks.',
  'A name with any non-public address is refused; so are localhost, single-label and reserved internal names.',
  'Policy check, decision and execution share one verdict.',
  'A deployment for development can exempt address ranges: its health document says egressExemption true, and so does each receipt concerned.',
] as const;

const IDEMPOTENCY_RULES = [
  'A key belongs to its payer and counts over both paid routes.',
  'Same key and same request: the stored result with its first status, idempotentReplay true, no charge, nothing sent.',
  'Same key and another request: 409 idempotency_conflict. First call still running: 409 idempotency_in_progress.',
  'Every field counts as the request: url, method, headers, body, retry, timeoutMs, key, route and decision.',
  'A payment is a key as well: presented again it replays or resumes its call, with another request it is 409 payment_reused. It never frees.',
  'In demo mode all callers are one payer: choose keys that nobody else chooses.',
] as const;

const DECISION_RULES = [
  'Deterministic: the same action, policy and facts give the same recommendation.',
  'pay_and_execute: nothing speaks against it. manual_review: warnings only. do_not_pay: something blocks it.',
  'A decision approves one execution per payer, of exactly the action it was made for.',
] as const;

const RECEIPT_RULES = [
  `An action counts as done only when ${DONE_WHEN}. ${FAILED_VERIFIES}`,
  'It names job, method, every attempt with phase, outcome and whether the request left, the outcome, the payment, and a hash chain over the recorded events.',
  'URL, header names, bodies and key stand in it as salted commitments; the disclosures of the paid answer open them.',
  'A receipt is made for every job that began, failed and interrupted ones too.',
] as const;

const RETENTION_RULES = [
  'Reads of a job answer 404 after its retention; its receipt still verifies, by the checks that need no job.',
  'Repeats of a payment are answered from the event log for ever, those of a key for as long as the key holds, also after retention.',
  'Keep receipt.jws and disclosures yourself: with the published keys they verify without this service.',
] as const;
