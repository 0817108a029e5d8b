// Decide, then pay and execute with @x402/fetch
// Price, network, payee and resource are compared with the buyer’s own terms before anything is signed.
// npm install @x402/fetch @x402/evm viem
import process from 'node:process';
import { wrapFetchWithPayment } from '@x402/fetch';
import { buyerClient } from './buyer-client.ts';
import { checkResult, type Result } from './check-result.ts';

const guided = 'https://relay.example/api/execute/guided-webhook';
const payingFetch = wrapFetchWithPayment(fetch, buyerClient(guided));

const post = (body: unknown) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

// The key: an id of your own task, the same when you repeat it.
const action = {
  url: 'https://example.com/hook',
  method: 'POST',
  body: { event: 'order.paid', order: 17 },
  idempotencyKey: 'task-' + crypto.randomUUID(),
};
const buyerPolicy = { maxPriceUsd: '0.003', allowedNetworks: ['eip155:8453'] };

const decided = await fetch('https://relay.example/api/decide/webhook', post({ action, buyerPolicy }));
if (!decided.ok) throw new Error(decided.status + ' ' + (await decided.text()));
const decision = (await decided.json()) as { decisionId: string; recommendation: string };
console.log(decision.decisionId, decision.recommendation);
if (decision.recommendation !== 'pay_and_execute') process.exit(1);

const response = await payingFetch(guided, post({ decisionId: decision.decisionId, action }));
// 200: the target answered 2xx. 502: the target failed; there is a receipt, too. Any other status: not executed.
if (response.status !== 200 && response.status !== 502) {
  throw new Error(response.status + ' ' + (await response.text()));
}
await checkResult((await response.json()) as Result);
