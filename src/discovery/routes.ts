// The route table: every address of the service, declared once. The HTTP room serves these routes and no others, and all
// documents are built from this table.

import { DIRECTORY_TYPE } from '#src/domain/destination/message-signature.ts';

/** The tags of the operations, with their descriptions in the interface description. */
export const TAGS = {
  execution: 'One outbound HTTPS request, executed at once and receipted. Paid where payment is enforced.',
  policy: 'Checks and decisions before paying, free.',
  records: 'Jobs, receipts and decisions as recorded. Target, headers, body and payer are never shown.',
  verification: 'Whether a receipt is genuine and matches its job, check by check.',
  transparency: 'Public data of the service: proofs, decisions, monitoring and trust, redacted.',
  planning: 'Plans: browser steps for another agent, schedules. Nothing is executed here.',
  discovery: 'Documents about the service.',
  service: 'The service itself: MCP, health, a target to test against, this description.',
} as const;

export type RouteTag = keyof typeof TAGS;

export const JSON_TYPE = 'application/json';
export const TEXT_TYPE = 'text/plain; charset=utf-8';
export const HTML_TYPE = 'text/html; charset=utf-8';
export const SCRIPT_TYPE = 'text/javascript; charset=utf-8';
/** With the profile of RFC 9727 §7.3. */
const LINKSET_TYPE = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"';

export type RouteFacts = {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** A parameter is a segment `:name`. */
  readonly path: string;
  /** Query parameters that it cannot do without, as RFC 6570 writes them. */
  readonly query?: string;
  readonly tag: RouteTag;
  readonly summary: string;
  readonly description: string;
  /** Charged where payment is enforced. */
  readonly paid: boolean;
  /** An operation of the interface description. Pages, well-known files and operator routes are not. */
  readonly listed: boolean;
  readonly mediaType: string;
};

function operations(tag: RouteTag) {
  const declare =
    <M extends RouteFacts['method'], C extends boolean>(method: M, paid: C) =>
    <P extends string>(path: P, summary: string, description = summary, mediaType = JSON_TYPE) =>
      ({ method, path, tag, summary, description, paid, listed: true, mediaType }) as const;
  return {
    get: declare('GET', false),
    post: declare('POST', false),
    paid: declare('POST', true),
    remove: declare('DELETE', false),
    aside: <P extends string>(path: P, summary: string, mediaType = JSON_TYPE) =>
      ({ ...declare('GET', false)(path, summary, summary, mediaType), listed: false }) as const,
  };
}

const execution = operations('execution');
const policy = operations('policy');
const records = operations('records');
const verification = operations('verification');
const transparency = operations('transparency');
const planning = operations('planning');
const discovery = operations('discovery');
const service = operations('service');

/** As RFC 6570 and OpenAPI write it: `:id` is `{id}`, and the rest of a path `{+path}`. */
export function pathTemplate(path: string): string {
  return path.replace(/:([A-Za-z]+)/g, '{$1}').replace(/\*$/, '{+path}');
}

const CANARY = [
  'Test target, free to call directly',
  'Answers 200 with method, size and body hash of the request. Stores nothing. As the target of an execution ' +
    'it costs what any call costs.',
] as const;

export const DOCUMENT_ROUTES = {
  index: discovery.get('/api', 'Index of the interface: every operation with its address and price'),
  discovery: discovery.get('/api/discovery', 'Index of all documents'),
  catalog: discovery.get('/api/actions', 'Catalog of actions, templates, policy modes and free surfaces'),
  quickstart: discovery.get('/api/quickstart', 'Quickstart: a minimal request and the order of calls'),
  snippets: discovery.get('/api/snippets', 'Code snippets: curl, JavaScript, Python and MCP'),
  pricing: discovery.get('/api/pricing', 'Pricing: what a call costs, and when it is charged'),
  capabilities: discovery.get('/api/capabilities', 'Capabilities, rules and every limit'),
  mcpManifest: discovery.get('/api/mcp', 'MCP manifest: the server, its tools, and how to pay for them'),
  handoffCapabilities: discovery.get('/api/handoff/capabilities', 'What the browser handoff can express'),
  scheduleCapabilities: discovery.get('/api/schedules/capabilities', 'What a schedule can express'),
  errors: discovery.get(
    '/api/errors',
    'Every error code and every reason of a 402: meaning, charge, what to do',
  ),
  secretsPolicy: discovery.get('/api/secrets/policy', 'Secrets: what to send, and what is stored'),
  openapi: service.get('/openapi.json', 'The OpenAPI 3.1.0 description of the service'),
  llms: discovery.get('/llms.txt', 'Guide for language models (llmstxt.org)', undefined, TEXT_TYPE),
};

export const WELL_KNOWN_ROUTES = {
  apiCatalog: discovery.aside('/.well-known/api-catalog', 'API catalog (RFC 9727)', LINKSET_TYPE),
  x402: discovery.aside('/.well-known/x402', 'Paid resources of this host'),
  x402Items: discovery.aside('/.well-known/x402.json', 'Paid resources with their payment requirements'),
  agent: discovery.aside('/.well-known/agent.json', 'Agent manifest'),
  mcpWellKnown: discovery.aside('/.well-known/mcp.json', 'MCP manifest'),
  jwks: verification.aside('/.well-known/jwks.json', 'Public keys that verify receipts (RFC 7517)'),
  did: verification.aside('/.well-known/did.json', 'The same keys as a DID document (did:web)'),
  agentDirectory: verification.aside(
    '/.well-known/http-message-signatures-directory',
    'Public keys that verify outbound requests (RFC 9421, Web Bot Auth)',
    DIRECTORY_TYPE,
  ),
  robots: discovery.aside('/robots.txt', 'Rules for crawlers (RFC 9309)', TEXT_TYPE),
  favicon: service.aside('/favicon.svg', 'Icon', 'image/svg+xml'),
  faviconIco: service.aside('/favicon.ico', 'Icon', 'image/vnd.microsoft.icon'),
};

export const LOG_ROUTES = {
  logCheckpoint: transparency.aside('/log/checkpoint', 'Newest checkpoint (C2SP tlog-checkpoint)', TEXT_TYPE),
  logKey: transparency.aside('/log/key', 'Key that signs the checkpoints, as a note verifier key', TEXT_TYPE),
  logTile: transparency.aside('/log/tile/*', 'Tiles (C2SP tlog-tiles)', 'application/octet-stream'),
  logProof: transparency.aside(
    '/log/proof/:receiptId',
    'Inclusion of a receipt (C2SP tlog-proof)',
    TEXT_TYPE,
  ),
  logConsistency: {
    ...transparency.aside('/log/consistency', 'Proof that the log only grew between two of its sizes'),
    query: '{?from,to}',
  },
};

/** The verifier for programs, as files. */
export const VERIFIER_ROUTES = {
  verifierModule: verification.aside('/verifier/verify.js', 'The verifier, one file for import', SCRIPT_TYPE),
  verifierTypes: verification.aside(
    '/verifier/verify.d.ts',
    'Its types',
    'application/typescript; charset=utf-8',
  ),
  verifierPackage: verification.aside(
    '/verifier/webhook-relay.tgz',
    'The same as an npm package',
    'application/gzip',
  ),
  verifierPython: verification.aside(
    '/verifier/verify.py',
    'The verifier in Python, one file',
    'text/x-python; charset=utf-8',
  ),
};

export const PAGE_ROUTES = {
  frontPage: service.aside('/', 'What this service is, for people', HTML_TYPE),
  statusPage: transparency.aside('/status', 'Executions, failures, durations and lag as plots', HTML_TYPE),
  docsPage: discovery.aside('/docs', 'The interface description as a page', HTML_TYPE),
  verifyPage: verification.aside('/verify', 'Verify a receipt in your own browser', HTML_TYPE),
};

const CHARGED =
  'Settled before the call; charged once, never for a refusal or a replay. A 502 is a paid attempt, with its receipt.';

export const ROUTES = {
  execute: execution.paid(
    '/api/execute/webhook',
    'Execute one outbound HTTPS request',
    'Makes one outbound HTTPS request to a public target (1 to 3 attempts) and answers with a signed receipt of the ' +
      `attempt and its outcome, which anyone can verify offline. ${CHARGED}`,
  ),
  executeGuided: execution.paid(
    '/api/execute/guided-webhook',
    'Execute what a decision approved',
    'Executes the action that a free decision of POST /api/decide/webhook approved, once per payer, and answers with ' +
      `a signed receipt that names the decision. ${CHARGED}`,
  ),
  decide: policy.post(
    '/api/decide/webhook',
    'Decide before paying',
    'Evaluates an action against a buyer policy, records the decision with its facts, and recommends whether to pay. Free; nothing is sent to the target.',
  ),
  decision: records.get('/api/decisions/:id', 'Read a decision, its facts, and the execution that used it'),
  recentDecisions: transparency.get('/api/decisions/recent', 'Recent public decisions, redacted'),
  checkPolicy: policy.post(
    '/api/policy/check',
    'Check a request before paying for it',
    'Checks the target by the rules of an execution, and shows what would be sent. Free; nothing is sent to the target.',
  ),
  job: records.get(
    '/api/jobs/:id',
    'Read a job',
    'The job with its attempts. Target, headers, body, key and payer are never shown.',
  ),
  receipt: records.get(
    '/api/receipts/:id',
    'Read a receipt',
    'The signed receipt, its decoded payload and whether it verifies.',
  ),
  verifyJob: verification.get(
    '/api/verify/jobs/:id',
    'Verify a job and its receipt',
    'Checks the receipt signature, that job, receipt and recorded events agree, and that the transparency log contains the receipt or is not yet overdue.',
  ),
  verifyReceipt: verification.get(
    '/api/verify/receipts/:id',
    'Verify a receipt',
    'Checks the receipt signature and its inclusion in the transparency log; also its job, while that is retained.',
  ),
  recentProofs: transparency.get('/api/proofs/recent', 'Recent public proofs, redacted'),
  proofPage: verification.get(
    '/proof/:jobOrReceiptId',
    'Proof page',
    'A page for people with the state of a job or receipt and every check.',
    HTML_TYPE,
  ),
  proofBadge: verification.aside('/proof/:jobOrReceiptId/badge.svg', 'Badge of a proof', 'image/svg+xml'),
  monitoring: transparency.get('/api/monitoring/executions', 'Monitoring: executions and recent failures'),
  trust: transparency.get('/api/trust', 'Trust summary: measured facts for a buyer'),
  handoff: planning.post(
    '/api/handoff/browser',
    'Package a task for a browser agent',
    'Builds a structured package of browser steps for an external browser-capable agent. Free; no step is executed here and there is no receipt.',
  ),
  schedulePreview: planning.post(
    '/api/schedules/preview',
    'Preview a schedule',
    'Checks the shape of a schedule and the target policy, and shows the next runs. Free; nothing is scheduled, executed or charged.',
  ),
  canary: service.get('/api/canary/echo', ...CANARY),
  canaryPost: service.post('/api/canary/echo', `${CANARY[0]}, by POST`, CANARY[1]),
  ...DOCUMENT_ROUTES,
  discoveryMetadata: discovery.get('/api/discovery-metadata', 'Index of all documents, as /api/discovery'),
  mcp: service.post(
    '/mcp',
    'MCP server; its execution tools are paid',
    'Model Context Protocol over streamable HTTP, without sessions: the operations of this interface as tools. Free to reach; the paid ones are paid for in `_meta` where payment is enforced.',
  ),
  mcpSlash: {
    ...service.post('/mcp/', 'The MCP server, as clients write it that end addresses with a slash'),
    listed: false,
  },
  health: service.get('/health', 'Health of the service and of each part'),
  live: service.aside('/health/live', 'Whether the process answers'),
  metrics: service.aside('/metrics', 'Metrics for Prometheus'),
  verifyScript: verification.aside('/verify.js', 'The script of the pages', SCRIPT_TYPE),
  styleSheet: service.aside('/page.css', 'The style sheet of the pages', 'text/css; charset=utf-8'),
  ...WELL_KNOWN_ROUTES,
  ...LOG_ROUTES,
  ...VERIFIER_ROUTES,
  ...PAGE_ROUTES,
} as const satisfies Readonly<Record<string, RouteFacts>>;

/** Served and described only where schedules are on. */
export const SCHEDULE_ROUTES = {
  schedule: planning.get(
    '/api/schedules/:id',
    'Read a schedule and what became of its runs',
    'Status, runs with their due times, states, reasons and links of job and receipt. Target, headers, body and payer are never shown.',
  ),
  createSchedule: planning.paid(
    '/api/schedules/webhook',
    'Schedule an outbound HTTPS request',
    'Defines a schedule and takes the payment of its first run. It is verified now and settled when that run is due, or ' +
      'never: each run is charged once, when it is executed. A run that is skipped is not charged.',
  ),
  fundRun: planning.paid(
    '/api/schedules/:id/runs',
    'Pay for one more run of a schedule',
    'Takes the payment of the first run that has none. It is settled when that run is due, or never. The same payment ' +
      'again is answered in the same way.',
  ),
  cancelSchedule: planning.remove(
    '/api/schedules/:id',
    'Cancel a schedule',
    'No further run; a run in progress ends. Payments of other runs are never settled, and what was sealed for them is deleted. Needs authorization: Bearer with the cancelToken.',
  ),
} as const satisfies Readonly<Record<string, RouteFacts>>;

/** The operations of the interface description, each by its `operationId`: a verb, as generated clients name the call. */
export const OPERATIONS: readonly (readonly [id: string, route: RouteFacts])[] = [
  ['executeWebhook', ROUTES.execute],
  ['executeGuidedWebhook', ROUTES.executeGuided],
  ['decideWebhook', ROUTES.decide],
  ['getDecision', ROUTES.decision],
  ['listRecentDecisions', ROUTES.recentDecisions],
  ['checkPolicy', ROUTES.checkPolicy],
  ['getJob', ROUTES.job],
  ['getReceipt', ROUTES.receipt],
  ['verifyJob', ROUTES.verifyJob],
  ['verifyReceipt', ROUTES.verifyReceipt],
  ['listRecentProofs', ROUTES.recentProofs],
  ['getProofPage', ROUTES.proofPage],
  ['getMonitoring', ROUTES.monitoring],
  ['getTrust', ROUTES.trust],
  ['createHandoff', ROUTES.handoff],
  ['previewSchedule', ROUTES.schedulePreview],
  ['getCanary', ROUTES.canary],
  ['postCanary', ROUTES.canaryPost],
  ['getIndex', ROUTES.index],
  ['getDiscovery', ROUTES.discovery],
  ['getCatalog', ROUTES.catalog],
  ['getQuickstart', ROUTES.quickstart],
  ['getSnippets', ROUTES.snippets],
  ['getPricing', ROUTES.pricing],
  ['getCapabilities', ROUTES.capabilities],
  ['getMcpManifest', ROUTES.mcpManifest],
  ['getHandoffCapabilities', ROUTES.handoffCapabilities],
  ['getScheduleCapabilities', ROUTES.scheduleCapabilities],
  ['getErrors', ROUTES.errors],
  ['getSecretsPolicy', ROUTES.secretsPolicy],
  ['getOpenapi', ROUTES.openapi],
  ['getLlmsText', ROUTES.llms],
  ['getDiscoveryMetadata', ROUTES.discoveryMetadata],
  ['callMcp', ROUTES.mcp],
  ['getHealth', ROUTES.health],
];

/** As `OPERATIONS`. */
export const SCHEDULE_OPERATIONS: typeof OPERATIONS = [
  ['getSchedule', SCHEDULE_ROUTES.schedule],
  ['createSchedule', SCHEDULE_ROUTES.createSchedule],
  ['fundScheduleRun', SCHEDULE_ROUTES.fundRun],
  ['cancelSchedule', SCHEDULE_ROUTES.cancelSchedule],
];
