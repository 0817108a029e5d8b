// The MCP server as it is published: its tools, its instructions for a model, and its manifest. A call of a tool is a call
// of its route, and is described as that is; `use` is for a model that chooses between the tools of many servers.
import { addressOf, openDocument, priced, shownTerms } from '#src/discovery/document.ts';
import { type Facts, networkName } from '#src/discovery/facts.ts';
import { DONE_WHEN, FAILED_VERIFIES, HOW_TO_PAY_BY_MCP, PURPOSE, whenText } from '#src/discovery/guidance.ts';
import { ROUTES, type RouteFacts, SCHEDULE_ROUTES } from '#src/discovery/routes.ts';
import { SERVICE } from '#src/domain/limits.ts';

const tool = <N extends string>(name: N, route: RouteFacts, use = '') => ({
  name,
  route,
  title: route.summary,
  // A summary in place of a description has no full stop.
  description: [route.description.replace(/[^.]$/, '$&.'), ...(use === '' ? [] : [use])].join(' '),
});

export const MCP_TOOLS = [
  tool(
    'execute_webhook',
    ROUTES.execute,
    'Use it for one bounded side effect that needs proof; not for private addresses, and not for several steps. Give an ' +
      'idempotencyKey: a repeat with the same key returns the first result and sends and charges nothing. A target that ' +
      'fails is a result with job.status "failed" and a receipt.',
  ),
  tool(
    'execute_guided_webhook',
    ROUTES.executeGuided,
    'The decision is one of decide_webhook with "pay_and_execute": give the decisionId and the same action, unchanged.',
  ),
  tool(
    'decide_webhook',
    ROUTES.decide,
    'Recommends "pay_and_execute", "manual_review" or "do_not_pay" with reasons. Call it before execute_guided_webhook.',
  ),
  tool('check_policy', ROUTES.checkPolicy, 'Nothing is recorded.'),
  tool('get_job', ROUTES.job, 'Free.'),
  tool('get_receipt', ROUTES.receipt, 'Free.'),
  tool(
    'verify_receipt',
    ROUTES.verifyReceipt,
    `An execution is done only when ${DONE_WHEN}. ${FAILED_VERIFIES} Free.`,
  ),
  tool('get_pricing', ROUTES.pricing, 'Free.'),
] as const;

/** Only where schedules are on. */
const SCHEDULE_TOOLS = [
  tool(
    'create_schedule',
    SCHEDULE_ROUTES.createSchedule,
    'The payment is of run 1 alone, and is settled when that run is due: its authorization has to live until then.',
  ),
  tool('fund_schedule_run', SCHEDULE_ROUTES.fundRun, 'Call it once for each further run.'),
  tool('get_schedule', SCHEDULE_ROUTES.schedule, 'Free.'),
] as const;

export const mcpTools = ({ schedules }: Pick<Facts, 'schedules'>): readonly McpTool[] =>
  schedules === undefined ? MCP_TOOLS : [...MCP_TOOLS, ...SCHEDULE_TOOLS];

export type McpTool = (typeof MCP_TOOLS)[number] | (typeof SCHEDULE_TOOLS)[number];

export function toolDescription(tool: McpTool, facts: Facts): string {
  const { description, route } = tool;
  const answer = isExecution(tool) ? ` ${answerText(facts)}` : '';
  return route.paid ? `${description}${answer} ${priceText(facts)}` : description;
}

/** Whether the tool calls a target. */
export const isExecution = ({ route }: McpTool): boolean =>
  route === ROUTES.execute || route === ROUTES.executeGuided;

const answerText = ({ returnsResponses }: Facts): string =>
  returnsResponses
    ? "With returnResponse true the first result has the target's answer in `response`; it is never stored."
    : "The body of the target's answer is never returned.";

function priceText({ askedFor, offer }: Facts): string {
  if (askedFor === null) return 'Not charged: this service runs in demo mode.';
  const network = `${networkName(offer.network)}, ${offer.network}`;
  return (
    `Costs ${offer.price} a call, paid by x402 (${offer.scheme}; ${network}) in _meta["x402/payment"]; without a ` +
    'payment it answers with the payment terms. Refusals and replays are not charged.'
  );
}

const paidTools = (facts: Facts): readonly string[] =>
  mcpTools(facts).flatMap(({ name, route }) => (route.paid ? [name] : []));

const listed = (names: readonly string[]): string => names.join(', ').replace(/, (\w+)$/, ' and $1');

/** The instructions of `initialize`, which a client gives to its model. */
export function serverInstructions(facts: Facts): string {
  return [
    PURPOSE,
    whenText(facts),
    'Order: decide_webhook (free); on "pay_and_execute" execute_guided_webhook with the same action; verify_receipt. ' +
      `Or execute_webhook at once. The action is done only when ${DONE_WHEN}.`,
    `${listed(paidTools(facts))}: ${priceText(facts)}`,
    'Always give an idempotencyKey. After an unclear failure repeat the same call with the same payment, never with a ' +
      'new one: a finished call is not sent and not charged again.',
  ].join('\n');
}

export const mcpManifest = openDocument([ROUTES.mcpManifest, ROUTES.mcpWellKnown], (facts) => ({
  ...SERVICE,
  description: PURPOSE,
  endpoint: addressOf(facts, ROUTES.mcp),
  transport: 'streamable-http',
  protocolVersions: [...facts.mcpVersions],
  tools: mcpTools(facts).map(({ route, ...shown }) => ({ ...shown, ...priced(facts, route) })),
  payment: {
    ...shownTerms(facts),
    requestMeta: 'x402/payment',
    responseMeta: 'x402/payment-response',
    howToPay: HOW_TO_PAY_BY_MCP,
  },
  documentation: addressOf(facts, ROUTES.snippets),
}));
