// Pay and execute with @x402/fetch
// The stock client reads the 402, pays and repeats the call; a hook compares price, network, payee and resource before it signs.
// npm install @x402/fetch @x402/evm viem
import { wrapFetchWithPayment } from '@x402/fetch';
import { buyerClient } from './buyer-client.ts';
import { checkResult, type Result } from './check-result.ts';

const route = 'https://relay.example/api/execute/webhook';
const payingFetch = wrapFetchWithPayment(fetch, buyerClient(route));

const response = await payingFetch(route, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    url: 'https://example.com/hook',
    method: 'POST',
    body: { event: 'order.paid', order: 17 },
    // A second run with this key is a replay: it returns the recorded result, and nothing is sent or charged.
    idempotencyKey: 'order-17',
  }),
});
// 200: the target answered 2xx. 502: the target failed; there is a receipt, too. Any other status: not executed.
if (response.status !== 200 && response.status !== 502) {
  throw new Error(response.status + ' ' + (await response.text()));
}
await checkResult((await response.json()) as Result);
