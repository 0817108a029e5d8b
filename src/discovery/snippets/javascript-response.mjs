// Pay, and get what the target answers
// Asks with Prefer: return=representation. The answer of the target is in the first answer alone, and stored nowhere; the client compares it with the receipt, which commits to its hash.
// Run: npm install @x402/fetch @x402/evm viem https://relay.example/verifier/webhook-relay.tgz && node javascript-response.mjs
import process from 'node:process';
import { relay, report } from './relay-client.mjs';

const order = {
  url: 'https://example.com/hook',
  method: 'POST',
  body: { event: 'order.paid', order: 17 },
  // An id of your own task: a second run with the same one is a replay, which has no answer of the target.
  idempotencyKey: 'task-' + (process.argv[2] ?? crypto.randomUUID()),
};

// Sends the request header Prefer: return=representation.
const bought = await relay.execute(order, { returnResponse: true });
report(bought);
const { response } = bought;
if (response === null) console.log('no answer of the target');
else console.log(response.status, response.headers['content-type'], new TextDecoder().decode(response.body));
