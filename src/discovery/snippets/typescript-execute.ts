// npm install @x402/fetch @x402/evm viem
import process from 'node:process';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';

const client = new x402Client();
client.setSpendControls({ maxAmountPerPayment: '$0.003' });
registerExactEvmScheme(client, {
  signer: privateKeyToAccount(process.env.BUYER_PRIVATE_KEY as Hex),
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
    idempotencyKey: 'order-17',
  }),
});
// 200: the target answered 2xx. 502: the target failed; there is a receipt, too. Any other status: not executed.
if (response.status !== 200 && response.status !== 502) {
  throw new Error(response.status + ' ' + (await response.text()));
}
const result = (await response.json()) as {
  mode: string;
  idempotentReplay: boolean;
  job: { id: string; status: string; responseStatus: number | null };
  receipt: { id: string };
  links: { verifyReceipt: string };
};
console.log(
  result.mode,
  result.job.status,
  result.receipt.id,
  result.idempotentReplay ? 'replay' : 'first time',
);

// Done only when the paid answer is a success (200, job.status succeeded) and the verification report has ok true, signatureVerified true and every check ok true.
const report = (await (await fetch(result.links.verifyReceipt)).json()) as {
  ok: boolean;
  signatureVerified: boolean;
  checks: { name: string; ok: boolean }[];
};
const proven = report.ok && report.signatureVerified && report.checks.every(({ ok }) => ok);
console.log(proven ? 'verified' : 'NOT verified', JSON.stringify(report.checks));
if (!proven || result.job.status !== 'succeeded') process.exitCode = 1;
