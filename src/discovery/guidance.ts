// What several documents, the OpenAPI description and the MCP server state, each statement once.
import { LIMITS, METHODS } from '#src/domain/limits.ts';
import { chargeText, methodAndPath } from './document.ts';
import type { Facts } from './facts.ts';
import { ROUTES } from './routes.ts';

/** Specification, Authentication, 4. Continues a sentence such as `done only when`. */
export const DONE_WHEN =
  'the paid answer is a success (200, job.status succeeded) and the verification report has ok true, ' +
  'signatureVerified true and every check ok true';

/** The report is about the receipt: a failed job has a valid receipt, too. */
export const FAILED_VERIFIES = 'The receipt of a failed job (502) also verifies, but its action is not done.';

/** With POST: an execution cannot send GET. */
export const TEST_TARGET = `${methodAndPath(ROUTES.canaryPost)} is free to call directly: it describes the request. As the target of an execution, where this service has an https address, it costs what any call costs.`;

export const PURPOSE =
  'Makes one outbound HTTPS request to a public target for an agent and answers with a signed receipt of the attempt and its outcome, which anyone can verify.';

/**
 * `info.x-guidance`: at most 4000 characters, which directories show to agents unchanged. It uses paths, so that its length does
 * not depend on the base address; the document that contains it names the server.
 */
export function guidanceText(facts: Facts): string {
  const steps = callOrder(facts).map((step, i) => `${i + 1}. ${step}`);
  return [
    PURPOSE,
    whenText(facts),
    `Price: ${chargeText(facts)} A refusal (any 4xx, 508) and a replay are never charged.`,
    `Order of calls (paths are below the server of this description):\n${steps.join('\n')}`,
    ...(facts.askedFor === null ? [] : [`Payment: ${HOW_TO_PAY.join(' ')}`]),
    `Repeats: ${repeats(facts)}`,
    `Verification: ${FAILED_VERIFIES} Receipts are JWS; ${ROUTES.jwks.path} contains the keys to verify them offline, ${ROUTES.verifierPackage.path} (npm) and ${ROUTES.verifierPython.path} are the verifier.`,
    `Limits: ${limitsText(facts)}`,
    `Try it: ${methodAndPath(ROUTES.checkPolicy)} checks a target without calling it, free. ${TEST_TARGET}`,
    `More: ${ROUTES.llms.path}, ${ROUTES.quickstart.path}, ${ROUTES.snippets.path}.`,
  ].join('\n\n');
}

export const USE_WHEN = [
  `The task needs one bounded side effect (${METHODS.join(', ')}) at a public HTTPS target.`,
  'You need proof of the attempt and its outcome that others can verify.',
  'You want to pay per action, without an account.',
];

/** How a caller asks for the answer of its target (RFC 7240). */
export const ASK_FOR_RESPONSE = 'Prefer: return=representation';

export const avoidWhen = ({ returnsResponses }: Facts) => [
  'The target is on localhost, in a private network, or not HTTPS.',
  returnsResponses
    ? 'The task takes several steps, or needs more of the target’s answer than its first 64 KiB, once and on request.'
    : 'The task takes several steps, or needs the body of the target’s answer: only its status is returned.',
  'The price is not acceptable.',
  'The target cannot safely receive duplicate attempts without idempotency (retry.attempts above 1 may send more than once).',
];

export const NEVER_SEND = [
  'wallet private keys',
  'seed phrases',
  'database URLs',
  'long-lived admin credentials',
] as const;

export const NEVER_SEND_TEXT = `Never send ${NEVER_SEND.slice(0, -1).join(', ')} or ${NEVER_SEND.at(-1)}.`;

export const notWhenText = (facts: Facts): string =>
  `Not when: ${avoidWhen(facts).join(' ')} ${NEVER_SEND_TEXT}`;

export const whenText = (facts: Facts): string =>
  `Use it when: ${USE_WHEN.join(' ')}\n\n${notWhenText(facts)}`;

/** The members of an action, with their limits. */
export function fieldsText(): string {
  const {
    urlLength,
    targetHeaders,
    requestBodyBytes,
    idempotencyKeyLength,
    retryAttempts,
    retryBackoffMs,
    timeoutMs,
  } = LIMITS;
  const range = ({ min, max, default: usual }: { min: number; max: number; default?: number }) =>
    `${min} to ${max}${usual === undefined ? '' : `, default ${usual}`}`;
  return (
    `An action has url (required: https, up to ${urlLength.max} characters), method (${METHODS.join(', ')}; default ${METHODS[0]}), ` +
    `headers (object, up to ${targetHeaders.max}), body (any JSON; the whole request up to ${requestBodyBytes.max / 1024} KiB), idempotencyKey (${range(idempotencyKeyLength)} characters), ` +
    `retry.attempts (${range(retryAttempts)}), retry.backoffMs (${range(retryBackoffMs)}), timeoutMs of an attempt (${range(timeoutMs)}).`
  );
}

/** The calls from decision to verification: one or two sentences each, with paths. */
export function callOrder(facts: Facts): readonly string[] {
  return [
    `${methodAndPath(ROUTES.decide)} with {"action": {"url", "body", "idempotencyKey"}, "buyerPolicy": {"maxPriceUsd"}}: free; read \`decisionId\` and \`recommendation\`.`,
    `If it is \`pay_and_execute\`: ${methodAndPath(ROUTES.executeGuided)} with {"decisionId", "action"}, the same action; or without a decision ${methodAndPath(ROUTES.execute)} with the action. ${payment(facts)}`,
    `200: the target answered 2xx. 502: it did not, and the action is not done. Both contain \`job\`, \`receipt\` and \`links\`${facts.askedFor === null ? '' : ', and both are charged, once'}.`,
    `GET \`links.verifyReceipt\`. Done only when ${DONE_WHEN}. Keep the receipt id.`,
  ];
}

export const repeats = (facts: Facts): string =>
  repeatsText(
    facts,
    ', or with the same idempotencyKey and a new payment, which is not taken if the first one was paid; 409 with `details.paymentState` reserved or unconfirmed: that is not known yet; refunding: use another key',
  );

/** Without the cases in which another payment is signed. */
export const repeatsInShort = (facts: Facts): string => repeatsText(facts, '');

function repeatsText({ askedFor }: Facts, otherwise: string): string {
  const wait = 'After 409 `idempotency_in_progress` or 429 wait for Retry-After.';
  if (askedFor === null) {
    return `repeat a lost call with the same body and idempotencyKey: nothing is sent twice. Without a key it is a new call. ${wait}`;
  }
  return (
    'repeat a lost call with the same body and the same payment header: nothing is sent or charged twice. ' +
    `After 503 \`payment_unconfirmed\` repeat with that same header${otherwise}. A new payment without a key is a new call. ${wait}`
  );
}

export const HOW_TO_PAY = [
  'An unpaid call answers 402 before its body is checked. Compare price, network, asset, payTo and resource with your policy: if all match, sign and repeat the same request with the payment, otherwise stop. It is settled before the target is called.',
  'x402 version 2: terms in the header PAYMENT-REQUIRED (base64 of JSON), payment in PAYMENT-SIGNATURE, result in PAYMENT-RESPONSE. Version 1: terms in the JSON body, payment in X-PAYMENT, result in X-PAYMENT-RESPONSE.',
  `The payee, \`payTo\`, is published in \`accepts\` of ${ROUTES.pricing.path} and ${ROUTES.x402Items.path}.`,
];

/** x402's MCP transport. */
export const HOW_TO_PAY_BY_MCP =
  'Where payment is required, an unpaid call of a paid tool answers isError true with the terms in structuredContent, in _meta["x402/error"] and as JSON in content[0].text, and executes nothing. Repeat it with the same arguments and the payment in _meta["x402/payment"], as the object or as the text of the PAYMENT-SIGNATURE header; the result is in _meta["x402/payment-response"].';

function payment({ askedFor }: Facts): string {
  if (askedFor === null) return 'No payment is needed here.';
  return 'It answers 402 with the terms of the payment.';
}

function limitsText({ rateLimitPerMinute, returnsResponses }: Facts): string {
  const { retryAttempts, timeoutMs, requestBodyBytes, idempotencyKeyLength, decisionsPerMinute } = LIMITS;
  return (
    `${retryAttempts.min} to ${retryAttempts.max} attempts, ${timeoutMs.min} to ${timeoutMs.max} ms each, request body up to ` +
    `${requestBodyBytes.max / 1024} kB, idempotencyKey ${idempotencyKeyLength.min} to ${idempotencyKeyLength.max} characters, ${rateLimitPerMinute} calls and ` +
    `${decisionsPerMinute.max} decisions a minute from one address. ` +
    (returnsResponses
      ? `The target's answer is in \`response\` of the first answer to a call with \`${ASK_FOR_RESPONSE}\`; it is never stored.`
      : "The target's answer body is never returned.")
  );
}
