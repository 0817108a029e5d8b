// Pay and execute with @x402/fetch
// The stock client reads the 402, pays up to the price on one network, and repeats the call. It does not compare the payee: typescript-buyer-policy does.
// npm install @x402/fetch @x402/evm viem
import process from 'node:process';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { checkResult, type Result } from './check-result.ts';

const key = process.env.BUYER_PRIVATE_KEY;
if (!key) throw new Error('BUYER_PRIVATE_KEY is not set: 0x and 64 hex digits');
const client = new x402Client();
client.setSpendControls({ maxAmountPerPayment: '$0.003' });
registerExactEvmScheme(client, {
  signer: privateKeyToAccount(key as Hex),
  networks: ['eip155:8453'],
});
const payingFetch = wrapFetchWithPayment(fetch, client);

const response = await payingFetch('https://relay.example/api/execute/webhook', {
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
