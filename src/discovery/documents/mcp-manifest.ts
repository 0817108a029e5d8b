// The manifest of the MCP server: address, tools, and payment of paid tools.
import { Type } from '@sinclair/typebox';
import {
  addressOf,
  type Document,
  heading,
  headingSchema,
  paymentTerms,
  Text,
  termsSchema,
} from '#src/discovery/document.ts';
import { PURPOSE } from '#src/discovery/guidance.ts';
import { MCP_TOOLS } from '#src/discovery/mcp-tools.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { Closed, Link } from '#src/domain/schema-parts.ts';
import { priced, pricedSchema } from './discovery-index.ts';

const McpManifest = Closed({
  ...headingSchema,
  name: Text,
  version: Text,
  description: Text,
  endpoint: Link,
  transport: Type.Literal('streamable-http'),
  protocolVersions: Type.Array(Text, { description: 'The newest first.' }),
  tools: Type.Array(
    Closed(
      { name: Text, title: Text, description: Text, ...pricedSchema },
      'A call of the tool is a call of this operation.',
    ),
  ),
  payment: Closed({
    ...termsSchema,
    requestMeta: Type.String({ description: 'Member of `_meta` that carries the payment.' }),
    responseMeta: Type.String({ description: 'Member of `_meta` that carries the settlement.' }),
    unpaidCall: Text,
    howToPay: Text,
  }),
  documentation: Link,
});

export const mcpManifest: Document<typeof McpManifest> = {
  routes: [ROUTES.mcpManifest, ROUTES.mcpWellKnown],
  answer: 'The manifest.',
  schema: McpManifest,
  build: (facts) => ({
    ...heading(facts),
    name: SERVICE.name,
    version: SERVICE.version,
    description: PURPOSE,
    endpoint: addressOf(facts, ROUTES.mcp),
    transport: 'streamable-http',
    protocolVersions: [...facts.mcpVersions],
    tools: MCP_TOOLS.map(({ name, title, description, route }) => ({
      name,
      title,
      description,
      ...priced(facts, route),
    })),
    payment: {
      ...paymentTerms(facts),
      requestMeta: 'x402/payment',
      responseMeta: 'x402/payment-response',
      unpaidCall: UNPAID,
      howToPay: HOW_TO_PAY,
    },
    documentation: addressOf(facts, ROUTES.snippets),
  }),
};

// x402's MCP transport.
const UNPAID =
  'Where payment is required, a paid tool called without payment answers a result with isError true and the payment requirements in structuredContent and as JSON in content[0].text. Nothing is executed.';
const HOW_TO_PAY =
  'Call the same tool with the same arguments and the signed payment payload in _meta["x402/payment"]; the settlement is returned in _meta["x402/payment-response"].';
