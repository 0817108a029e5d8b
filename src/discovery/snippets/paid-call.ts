// One paid call: what a 402 looks like, and the shortest code that pays it.
import { addressOf } from '#src/discovery/documents/document-parts.ts';
import type { Snippet, SnippetGroup } from '#src/discovery/documents/snippets.ts';
import type { Facts } from '../facts.ts';
import { ACTION } from '../paid-routes.ts';
import { ROUTES } from '../routes.ts';
import { shellJson, tsLiteral } from './literals.ts';
import { mcpExecute } from './mcp.ts';
import { PAYING_IMPORTS, payingNote, READ_RESULT, VERIFY_RESULT } from './paying.ts';
import { sharedKey } from './pieces.ts';

export function paidCall(facts: Facts): SnippetGroup {
  return {
    id: 'paid-call',
    title: 'One paid call',
    description:
      'Execute one webhook and get a signed receipt. A repeat with the same idempotencyKey is answered with the first result and charged nothing.',
    snippets: [curlExecute(facts), typescriptExecute(facts), mcpExecute(facts)],
  };
}

const curlExecute = (facts: Facts): Snippet => ({
  id: 'curl-execute',
  title: 'Execute one webhook with curl',
  language: 'shell',
  description:
    facts.mode === 'demo'
      ? `This service runs in demo mode: the call goes through without payment and answers with a receipt. Where payment is enforced it answers 402 with the terms (${facts.offer.price}).${sharedKey(facts)}`
      : `Without a payment it answers 402 with the terms (${facts.offer.price}), and nothing is sent to the target; an x402 client pays and repeats the call. On a service in demo mode it goes through without payment.`,
  code: `curl -sS -i ${addressOf(facts, ROUTES.execute)} \\
  -H 'content-type: application/json' \\
  -d ${shellJson(ACTION)}
`,
});

const typescriptExecute = (facts: Facts): Snippet => ({
  id: 'typescript-execute',
  title: 'Pay and execute with @x402/fetch',
  language: 'typescript',
  description: `The stock client reads the 402, pays up to the price on one network, and repeats the call. ${payingNote(facts)}${sharedKey(facts)}`,
  code: `// npm install @x402/fetch @x402/evm viem
${PAYING_IMPORTS}

const client = new x402Client();
client.setSpendControls({ maxAmountPerPayment: '${facts.offer.price}' });
registerExactEvmScheme(client, {
  signer: privateKeyToAccount(process.env.BUYER_PRIVATE_KEY as Hex),
  networks: ['${facts.offer.network}'],
});
const payingFetch = wrapFetchWithPayment(fetch, client);

const response = await payingFetch('${addressOf(facts, ROUTES.execute)}', {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(${tsLiteral(ACTION, '  ')}),
});
${READ_RESULT}

${VERIFY_RESULT}`,
});
