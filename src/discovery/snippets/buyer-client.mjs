import process from 'node:process';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';

// What this buyer accepts. Keep it in your own configuration: a 402 that asks for anything else is not signed.
const accepted = {
  network: 'eip155:8453',
  asset: '0x1111111111111111111111111111111111111111',
  payTo: '0x2222222222222222222222222222222222222222',
  maxAmount: 3000n, // atomic units of the asset: $0.003
};

const same = (one, other) => one.toLowerCase() === other.toLowerCase();

export function buyerClient(resource, longestSeconds = 300) {
  const key = process.env.BUYER_PRIVATE_KEY;
  if (!key) throw new Error('BUYER_PRIVATE_KEY is not set: 0x and 64 hex digits');
  const client = new x402Client();
  registerExactEvmScheme(client, { signer: privateKeyToAccount(key) });
  return client.onBeforePaymentCreation(async ({ paymentRequired, selectedRequirements: asked }) => {
    const checks = {
      price: BigInt(asked.amount) <= accepted.maxAmount,
      asset: same(asked.asset, accepted.asset),
      network: asked.network === accepted.network,
      payTo: same(asked.payTo, accepted.payTo),
      resource: paymentRequired.resource?.url === resource,
      validity: asked.maxTimeoutSeconds <= longestSeconds, // how long the signed payment can be charged
    };
    const wrong = Object.entries(checks)
      .filter(([, fits]) => !fits)
      .map(([name]) => name);
    if (wrong.length > 0) return { abort: true, reason: 'not what this buyer accepts: ' + wrong.join(', ') };
  });
}
