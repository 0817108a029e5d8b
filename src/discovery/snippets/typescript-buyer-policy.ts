// npm install @x402/fetch @x402/evm viem
import process from 'node:process';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';

const route = 'https://relay.example/api/execute/webhook';

// What this buyer accepts. Keep it in your own configuration: a 402 that asks for anything else is not signed.
const accepted = {
  resource: route,
  network: 'eip155:8453',
  asset: '0x1111111111111111111111111111111111111111',
  payTo: '0x2222222222222222222222222222222222222222',
  maxAmount: 3000n, // atomic units of the asset: $0.003
};

const same = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();

const client = new x402Client();
registerExactEvmScheme(client, { signer: privateKeyToAccount(process.env.BUYER_PRIVATE_KEY as Hex) });
client.onBeforePaymentCreation(async ({ paymentRequired, selectedRequirements: asked }) => {
  const checks = {
    price: BigInt(asked.amount) <= accepted.maxAmount,
    asset: same(asked.asset, accepted.asset),
    network: asked.network === accepted.network,
    payTo: same(asked.payTo, accepted.payTo),
    resource: paymentRequired.resource?.url === accepted.resource,
  };
  const wrong = Object.entries(checks)
    .filter(([, fits]) => !fits)
    .map(([name]) => name);
  if (wrong.length > 0) return { abort: true, reason: 'not what this buyer accepts: ' + wrong.join(', ') };
});
const payingFetch = wrapFetchWithPayment(fetch, client);

const response = await payingFetch(route, {
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
