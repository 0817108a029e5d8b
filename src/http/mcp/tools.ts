// The tools as tools/list shows them: words from the one table, schemas from those that the routes enforce and fit.
import type { Tool, ToolAnnotations } from '@modelcontextprotocol/sdk/types.js';
import { type TSchema, Type } from '@sinclair/typebox';
import { pricing } from '#src/discovery/documents/pricing.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { MCP_TOOLS, type ToolFacts, type ToolName, toolDescription } from '#src/discovery/mcp-tools.ts';
import { GuidedRequest } from '#src/domain/decision/requests.ts';
import { ID_PATTERN } from '#src/domain/ids.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { Closed, Count } from '#src/domain/schema-parts.ts';
import { ErrorBody } from '#src/http/response/errors.ts';
import { ExecutionResponse, GuidedResponse } from '#src/http/response/execution-response.ts';
import { DecideRequest, DecisionResponse } from '#src/http/routes/decisions.ts';
import { JobResponse, ReceiptResponse } from '#src/http/routes/jobs.ts';
import { PolicyCheckResponse } from '#src/http/routes/policy.ts';
import { VerificationResponse } from '#src/http/routes/verify.ts';

type Forms = {
  /** Of the arguments: the body of the route's POST, or what its path has parameters for. */
  readonly input: TSchema;
  /** Of the route's answer. */
  readonly output: TSchema;
  readonly annotations: ToolAnnotations;
};

/** A call may delete something at the target, and does so twice if it is repeated without an idempotency key. */
const ACTS: ToolAnnotations = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: false,
  openWorldHint: true,
};
const RECORDS: ToolAnnotations = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: false,
};
const READS: ToolAnnotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};

const byId = (pattern: string, description: string) => Closed({ id: Type.String({ pattern, description }) });

export const TOOL_FORMS: Readonly<Record<ToolName, Forms>> = {
  execute_webhook: { input: WebhookRequest, output: ExecutionResponse, annotations: ACTS },
  execute_guided_webhook: { input: GuidedRequest, output: GuidedResponse, annotations: ACTS },
  decide_webhook: { input: DecideRequest, output: DecisionResponse, annotations: RECORDS },
  check_policy: { input: WebhookRequest, output: PolicyCheckResponse, annotations: READS },
  get_job: {
    input: byId(ID_PATTERN.job, 'job.id of an execution.'),
    output: JobResponse,
    annotations: READS,
  },
  get_receipt: {
    input: byId(ID_PATTERN.receipt, 'receipt.id of an execution.'),
    output: ReceiptResponse,
    annotations: READS,
  },
  verify_receipt: {
    input: byId(ID_PATTERN.receipt, 'receipt.id of an execution.'),
    output: VerificationResponse,
    annotations: READS,
  },
  get_pricing: { input: Closed({}), output: pricing.schema, annotations: READS },
};

export const ToolError = Closed(
  {
    error: ErrorBody.properties.error,
    retryAfterSeconds: Type.Optional(Count),
  },
  'With isError: refused or failed.',
);

/** As x402 version 2 has it; open, as its extensions are. */
const PaymentRequired = Type.Object(
  {
    x402Version: Type.Literal(2),
    error: Type.Optional(Type.String()),
    accepts: Type.Array(Type.Object({})),
  },
  {
    description:
      'With isError: not paid for, or the payment is refused. Pay one of `accepts` and call again.',
  },
);

export function listedTools(facts: Facts): readonly Tool[] {
  return MCP_TOOLS.map((tool) => listed(tool, facts));
}

function listed(tool: ToolFacts & { readonly name: ToolName }, facts: Facts): Tool {
  const { name, title, paid } = tool;
  const { input, output, annotations } = TOOL_FORMS[name];
  // The SDK's client holds results with isError against the schema as well: they are in it.
  const outputs = [output, ToolError, ...(paid ? [PaymentRequired] : [])];
  return {
    name,
    title,
    description: toolDescription(tool, facts),
    inputSchema: { ...input, type: 'object' },
    outputSchema: { type: 'object', anyOf: outputs },
    annotations: { title, ...annotations },
  };
}
