// Pay and execute with an x402 client
// The client compares price, network, payee and resource with your terms before it signs, and returns a call only when its receipt verifies and is of this order and payment; anything else is a RelayError with a code.
// Run: npm install @x402/fetch @x402/evm viem https://relay.example/verifier/webhook-relay.tgz && node javascript-execute.mjs
import { relay, report } from './relay-client.mjs';

const bought = await relay.execute({
  url: 'https://example.com/hook',
  method: 'POST',
  body: { event: 'order.paid', order: 17 },
  // A second run with this key is a replay: it returns the recorded result, and nothing is sent or charged.
  idempotencyKey: 'order-17',
});
report(bought);
