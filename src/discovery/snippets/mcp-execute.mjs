// Pay and execute over MCP
// Calls execute_webhook; unpaid, the tool answers with the terms; the payment goes into _meta of the same call.
// Run: npm install @modelcontextprotocol/client @x402/fetch @x402/evm viem && node mcp-execute.mjs
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { buyerClient } from './buyer-client.mjs';
import { checkResult } from './check-result.mjs';

const mcp = new Client({ name: 'my-agent', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
await mcp.connect(new StreamableHTTPClientTransport(new URL('https://relay.example/mcp')));

const call = {
  name: 'execute_webhook',
  arguments: {
    url: 'https://example.com/hook',
    method: 'POST',
    body: { event: 'order.paid', order: 17 },
    idempotencyKey: 'order-17',
  },
};
let answer = await mcp.callTool(call);
const terms = answer.structuredContent;
if (answer.isError && terms?.accepts !== undefined) {
  const payment = await buyerClient('https://relay.example/api/execute/webhook').createPaymentPayload(terms);
  answer = await mcp.callTool({ ...call, _meta: { 'x402/payment': payment } });
  console.log('settled:', JSON.stringify(answer._meta?.['x402/payment-response']));
}
await mcp.close();
const result = answer.structuredContent;
if (result?.receipt === undefined) throw new Error(JSON.stringify(answer.content));
await checkResult(result);
