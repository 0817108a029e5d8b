// Snippets for MCP clients, over streamable HTTP.

import { addressOf } from '#src/discovery/documents/document-parts.ts';
import type { Snippet } from '#src/discovery/documents/snippets.ts';
import { SERVICE } from '../../domain/limits.ts';
import type { Facts } from '../facts.ts';
import { MCP_TOOLS, type ToolName } from '../mcp-tools.ts';
import { ACTION } from '../paid-routes.ts';
import { ROUTES } from '../routes.ts';
import { tsLiteral } from './literals.ts';
import { checkedClient, payingNote, RESULT_TYPE, VERIFY_RESULT } from './paying.ts';
import { sharedKey } from './pieces.ts';

/** The name of a tool, which must be one. */
const tool = (name: ToolName): ToolName => name;

export const mcpConfig = (facts: Facts): Snippet => ({
  id: 'mcp-config',
  title: 'Configuration of an MCP client',
  language: 'json',
  description: `Adds this service to a client that speaks MCP over streamable HTTP: ${MCP_TOOLS.length} tools, no account. The client must be able to pay for the paid ones.`,
  code: `${JSON.stringify({ mcpServers: { [SERVICE.name]: { type: 'http', url: addressOf(facts, ROUTES.mcp) } } }, null, 2)}\n`,
});

export const mcpTools = (facts: Facts): Snippet => ({
  id: 'mcp-tools',
  title: 'List the tools over MCP and call a free one',
  language: 'typescript',
  description: 'Free. Uses the stock client of @modelcontextprotocol/sdk.',
  code: `// npm install @modelcontextprotocol/sdk
${CLIENT_IMPORTS}

${connect(facts)}

const { tools } = await mcp.listTools();
for (const { name, description } of tools) console.log(name + ': ' + description);

const checked = await mcp.callTool({
  name: '${tool('check_policy')}',
  arguments: ${tsLiteral(ACTION, '  ')},
});
console.log(JSON.stringify(checked.structuredContent));
await mcp.close();
if (checked.isError) throw new Error(JSON.stringify(checked.content));
`,
});

export const mcpExecute = (facts: Facts): Snippet => ({
  id: 'mcp-execute',
  title: 'Pay and execute over MCP',
  language: 'typescript',
  description: `Calls ${tool('execute_webhook')}; unpaid, the tool answers with the terms; the payment goes into _meta of the same call. ${payingNote(facts)}${sharedKey(facts)}`,
  code: `// npm install @modelcontextprotocol/sdk @x402/fetch @x402/evm viem
import process from 'node:process';
${CLIENT_IMPORTS}
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { type PaymentRequired, x402Client } from '@x402/fetch';
import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';

${checkedClient(facts, `'${addressOf(facts, ROUTES.execute)}'`)}

${connect(facts)}

const call = {
  name: '${tool('execute_webhook')}',
  arguments: ${tsLiteral(ACTION, '  ')},
};
let answer = await mcp.callTool(call);
const terms = answer.structuredContent as PaymentRequired | undefined;
if (answer.isError && terms?.accepts !== undefined) {
  const payment = await client.createPaymentPayload(terms);
  answer = await mcp.callTool({ ...call, _meta: { 'x402/payment': payment } });
  console.log('settled:', JSON.stringify(answer._meta?.['x402/payment-response']));
}
await mcp.close();
const result = answer.structuredContent as ${RESULT_TYPE};
if (result?.receipt === undefined) throw new Error(JSON.stringify(answer.content));
console.log(result.mode, result.job.status, result.receipt.id);

${VERIFY_RESULT}`,
});

const CLIENT_IMPORTS = `import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';`;

const connect = (facts: Facts) => `const mcp = new Client({ name: 'my-agent', version: '1.0.0' });
await mcp.connect(new StreamableHTTPClientTransport(new URL('${addressOf(facts, ROUTES.mcp)}')));`;
