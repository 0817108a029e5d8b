import process from 'node:process';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { relayClient } from 'webhook-relay/client';

const key = process.env.BUYER_PRIVATE_KEY;
if (!key) throw new Error('BUYER_PRIVATE_KEY is not set: 0x and 64 hex digits');
const wallet = new x402Client();
registerExactEvmScheme(wallet, { signer: privateKeyToAccount(key) });

// What this buyer accepts. Keep it in your own configuration: an offer of anything else is not signed.
export const relay = relayClient({
  relay: 'https://relay.example',
  wallet,
  network: 'eip155:8453',
  maxPriceUsd: '0.003',
  payTo: '0x2222222222222222222222222222222222222222',
  acceptDemo: true, // a relay in demo mode asks for no payment
});

/** The receipt was verified offline, and compared with the order and the payment, before this is called. */
export function report({ mode, outcome, job, receipt, idempotentReplay, verification }) {
  console.log(mode, job.status, receipt.id, idempotentReplay ? 'replay' : 'first time');
  console.log('verified', JSON.stringify(verification.checks));
  // A failed target was paid for, and has a receipt, too: the action is not done.
  if (outcome !== 'delivered') process.exitCode = 1;
}
