// The HTTP room with the real protocol: what it answers fits what it publishes, and real headers come through.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from '@x402/core/http';
import { lab, payloadOf, v1, v2, wallet } from '#test/adapters/payments/lab.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { fakeWorld, paidExecution } from '#test/support/world/http-deps.ts';

const ROUTES = [
  ['/api/execute/webhook', { url: 'https://a.example/hook' }],
  ['/api/execute/guided-webhook', { decisionId: 'dec_x', action: { url: 'https://a.example/hook' } }],
] as const;

async function paidClient() {
  const { protocol } = await lab();
  const execute = async () => paidExecution();
  const world = fakeWorld({ payments: protocol, settings: { mode: 'x402' }, execute });
  return { world, client: clientOf(world) };
}

test('the challenge, its hints included, fits the published 402, and its header names the route', async () => {
  const { client } = await paidClient();
  let challenges = 0;
  for (const [path, good] of ROUTES) {
    for (const body of ['', '{', JSON.stringify(good)]) {
      for (const headers of [{}, { 'x-payment': 'e30=' }]) {
        // The client holds each answer against the document.
        const response = await client.post(path, body, headers);
        const judgedFirst = 'x-payment' in headers && body.length < 2;
        assert.equal(response.status, judgedFirst ? 400 : 402);
        if (judgedFirst) continue;
        challenges += 1;
        const { resource } = decodePaymentRequiredHeader(response.headers.get('payment-required') ?? '');
        assert.match(resource?.url ?? '', new RegExp(`${path}$`));
      }
    }
  }
  assert.equal(challenges, 8);
});

test('a signed payment of either version reaches the use case, and its settlement is reported in that version', async () => {
  const { client, world } = await paidClient();
  const account = wallet();
  const payload = await payloadOf(account);
  const [path, good] = ROUTES[0];
  for (const [name, header, twin] of [
    ['payment-signature', v2(payload), false],
    ['x-payment', v1(payload), true],
  ] as const) {
    const response = await client.post(path, good, { [name]: header(name) ?? '' });
    assert.equal(response.status, 200);
    const settled = decodePaymentResponseHeader(response.headers.get('payment-response') ?? '');
    assert.deepEqual([settled.success, settled.transaction], [true, paidExecution().payment?.transaction]);
    assert.equal(response.headers.has('x-payment-response'), twin);
  }
  const [first, second] = world.executed;
  assert.equal(first?.payer, account.address.toLowerCase());
  assert.equal(first?.presented?.hash, second?.presented?.hash);
});
