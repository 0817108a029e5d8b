// List the tools over MCP and call a free one
// Free. Uses the stock client of @modelcontextprotocol/client.
// Run: npm install @modelcontextprotocol/client && node mcp-tools.mjs
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const mcp = new Client({ name: 'my-agent', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
await mcp.connect(new StreamableHTTPClientTransport(new URL('https://relay.example/mcp')));

const { tools } = await mcp.listTools();
for (const { name, description } of tools) console.log(name + ': ' + description);

const checked = await mcp.callTool({
  name: 'check_policy',
  arguments: {
    url: 'https://example.com/hook',
    method: 'POST',
    body: { event: 'order.paid', order: 17 },
    idempotencyKey: 'order-17',
  },
});
console.log(JSON.stringify(checked.structuredContent));
await mcp.close();
if (checked.isError) throw new Error(JSON.stringify(checked.content));
