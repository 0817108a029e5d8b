// Decide, then pay and execute
// Price, network, payee and resource are compared with the buyer’s own terms before anything is signed; the receipt must name the decision.
// Run: npm install @x402/fetch @x402/evm viem https://relay.example/verifier/webhook-relay.tgz && node javascript-guided.mjs
import process from 'node:process';
import { relay, report } from './relay-client.mjs';

// The key: an id of your own task, the same when you repeat it.
const action = {
  url: 'https://example.com/hook',
  method: 'POST',
  body: { event: 'order.paid', order: 17 },
  idempotencyKey: 'task-' + crypto.randomUUID(),
};
const buyerPolicy = { maxPriceUsd: '0.003', allowedNetworks: ['eip155:8453'] };

const decided = await fetch('https://relay.example/api/decide/webhook', {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ action, buyerPolicy }),
});
if (!decided.ok) throw new Error(decided.status + ' ' + (await decided.text()));
const decision = await decided.json();
console.log(decision.decisionId, decision.recommendation);
if (decision.recommendation !== 'pay_and_execute') process.exit(1);

report(await relay.executeGuided(decision.decisionId, action));
