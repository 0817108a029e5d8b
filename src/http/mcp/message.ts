// A message of the Model Context Protocol as POST /mcp takes it, and the answer to it.
import { Type } from '@sinclair/typebox';
import { Closed, Nullable } from '#src/domain/schema-parts.ts';

const Id = Type.Union([Type.String(), Type.Integer()]);
const Version = Type.Literal('2.0');

export const McpMessage = Closed({
  jsonrpc: Version,
  id: Type.Optional(Type.Union(Id.anyOf, { description: 'Absent: a notification, answered 202.' })),
  method: Type.String({ description: 'Such as initialize, tools/list, tools/call.' }),
  params: Type.Optional(
    Type.Object(
      {},
      { description: 'Of tools/call: `name`, `arguments`, and for paid tools `_meta["x402/payment"]`.' },
    ),
  ),
});
export type McpMessage = typeof McpMessage.static;

export const McpAnswer = Type.Object(
  { jsonrpc: Version, id: Nullable(Id) },
  {
    description:
      'With `result` or `error`, as JSON-RPC 2.0 has it. The result of tools/call: `content`, `structuredContent` (fits the outputSchema of the tool), `isError` (refused, failed, or not paid for) and `_meta["x402/payment-response"]` (the settlement, as in PAYMENT-RESPONSE) or `_meta["x402/error"]` (what to pay, as in `structuredContent`).',
  },
);
