// The tools of the MCP server, declared once: a call of a tool is a call of its route. Names and descriptions are for a
// model that chooses between the tools of many servers.
import { type Facts, networkName } from './facts.ts';
import { DONE_WHEN, FAILED_VERIFIES } from './guidance.ts';
import { ROUTES, type RouteFacts } from './routes.ts';

/** `description`: without the price, which `toolDescription` adds. */
export type ToolFacts = {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly route: RouteFacts;
  /** The same as of its route: charged where payment is enforced. */
  readonly paid: boolean;
};

type Described = Omit<ToolFacts, 'route' | 'paid'>;

const tool = <R extends RouteFacts, const T extends Described>(route: R, described: T) =>
  ({ ...described, route, paid: route.paid }) as const;

export const MCP_TOOLS = [
  tool(ROUTES.execute, {
    name: 'execute_webhook',
    title: 'Execute one outbound HTTPS request',
    description:
      'Makes one outbound HTTPS request (POST, PUT, PATCH or DELETE, 1 to 3 attempts) to a public target and returns a ' +
      'signed receipt of the attempt and its outcome. Use it for one bounded side effect that needs proof. Give an ' +
      'idempotencyKey: a repeat with the same key returns the first result and sends and charges nothing. A target ' +
      'that fails is a result with job.status "failed" and a receipt, and is charged; the body of its answer is ' +
      'never returned. Not for private addresses, and not for several steps.',
  }),
  tool(ROUTES.executeGuided, {
    name: 'execute_guided_webhook',
    title: 'Execute what a decision approved',
    description:
      'Executes, once per payer, exactly the action that decide_webhook approved with "pay_and_execute", and returns a ' +
      'signed receipt that names the decision. Give the decisionId and the same action, unchanged.',
  }),
  tool(ROUTES.decide, {
    name: 'decide_webhook',
    title: 'Decide before paying',
    description:
      'Evaluates an action against your buyer policy before any payment, records the decision and recommends ' +
      '"pay_and_execute", "manual_review" or "do_not_pay" with reasons. Free; nothing is sent to the target. Call it ' +
      'before execute_guided_webhook.',
  }),
  tool(ROUTES.checkPolicy, {
    name: 'check_policy',
    title: 'Check whether a target may be called',
    description:
      'Checks the target by the rules of an execution and shows which method, headers and retries would be used. Free; ' +
      'nothing is sent to the target and nothing is recorded.',
  }),
  tool(ROUTES.job, {
    name: 'get_job',
    title: 'Read a job',
    description:
      'Reads one execution with its attempts, status and timings. Target, headers, body and payer are never shown. Free.',
  }),
  tool(ROUTES.receipt, {
    name: 'get_receipt',
    title: 'Read a receipt',
    description:
      'Reads the signed receipt of an execution, its decoded payload and whether its signature is valid. Free.',
  }),
  tool(ROUTES.verifyReceipt, {
    name: 'verify_receipt',
    title: 'Verify a receipt',
    description:
      'Checks the signature of a receipt and that it matches its job and the recorded events, check by check. ' +
      `An execution is done only when ${DONE_WHEN}. ${FAILED_VERIFIES} Free.`,
  }),
  tool(ROUTES.pricing, {
    name: 'get_pricing',
    title: 'Read the price',
    description: 'Returns the price of an execution, its network, and when it is charged and when not. Free.',
  }),
] as const satisfies readonly ToolFacts[];

export type ToolName = (typeof MCP_TOOLS)[number]['name'];

/** The published description, with the price of this deployment. */
export function toolDescription({ description, paid }: ToolFacts, facts: Facts): string {
  return paid ? `${description} ${priceText(facts)}` : description;
}

function priceText({ askedFor, offer }: Facts): string {
  if (askedFor === null) return 'Not charged: this service runs in demo mode.';
  const network = `${networkName(offer.network)}, ${offer.network}`;
  return (
    `Costs ${offer.price} a call, paid by x402 (${offer.scheme}; ${network}) in _meta["x402/payment"]; without a ` +
    'payment it answers with the payment terms. Refusals and replays are not charged.'
  );
}

/** The instructions of `initialize`, which a client gives to its model. */
export function serverInstructions(facts: Facts): string {
  return [
    'Makes one outbound HTTPS request for you and returns a signed receipt of the attempt, which anyone can verify. Use ' +
      'it for one bounded side effect at a public HTTPS target that needs proof; not for private targets, for reading ' +
      'pages, or for several steps.',
    'Order: decide_webhook (free); on "pay_and_execute" execute_guided_webhook with the same action; verify_receipt. ' +
      `Or execute_webhook at once. The action is done only when ${DONE_WHEN}.`,
    `execute_webhook and execute_guided_webhook: ${priceText(facts)}`,
    'Always give an idempotencyKey. After an unclear failure repeat the same call with the same payment, never with a ' +
      'new one: a finished call is not sent and not charged again.',
  ].join('\n');
}
