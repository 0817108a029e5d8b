// A signature of 65 bytes that is not by the payer's key: a contract wallet's, or wrong.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { X402 } from '#src/adapters/payments/x402.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { facilitatorDouble } from '#test/support/chain/facilitator-double.ts';
import { type ChainNode, startChainNode } from '#test/support/chain/scripted-node.ts';
import { manualClock } from '#test/support/world/fakes.ts';
import {
  authorizationOf,
  CLIENT,
  lab,
  type Payload,
  presented,
  refusalOf,
  signatureOf,
  v1,
  v2,
  wallet,
} from './lab.ts';

/** Signed by another key than that of the address it names. */
async function foreign(owner = wallet(), address = wallet().address): Promise<Payload> {
  const authorization = authorizationOf(owner, { from: address });
  return { authorization, signature: await signatureOf(owner, authorization) };
}

const codeCalls = ({ asked }: ChainNode) => asked.filter(({ method }) => method === 'eth_getCode').length;

async function labOn(node: ChainNode, facilitatorUrl?: string) {
  const clock = manualClock(Date.now());
  const x402 = { rpcUrl: node.url, ...(facilitatorUrl && { facilitatorUrl }) };
  return { ...(await lab({ x402, clock })), clock };
}

const signerOf = async (x402: X402, payload: Payload) => (await presented(x402, v2(payload))).signer;

test('of a contract wallet: the facilitator decides, and receives the bytes as they were signed', async () => {
  await using node = await startChainNode();
  await using facilitator = await facilitatorDouble();
  const x402 = await labOn(node, facilitator.url);
  for (const v of ['1b', '1c', '00', '01', '20', 'ff']) {
    const payload = await foreign();
    const signature = `${payload.signature.slice(0, -2)}${v}`;
    node.faults.contracts.add(payload.authorization.from.toLowerCase());
    for (const header of [v1, v2]) {
      const payment = await presented(x402, header({ ...payload, signature }));
      assert.deepEqual(
        [payment.signer, payment.payer],
        ['contract', payload.authorization.from.toLowerCase()],
      );
      assert.deepEqual(await x402.payments.verify(payment), { outcome: 'valid' });
      const body = facilitator.lastCall()?.body as { paymentPayload: { payload: Payload } };
      assert.equal(body.paymentPayload.payload.signature, signature);
    }
  }
});

test('of an address without code: refused, without a call of the facilitator', async () => {
  await using node = await startChainNode();
  const x402 = await labOn(node);
  const payload = await foreign();
  for (const header of [v1, v2]) assert.equal(await refusalOf(x402, header(payload)), 'invalid_signature');
  assert.equal(codeCalls(node), 1, 'the node is asked once a minute');
  x402.clock.advance(60_000);
  node.faults.contracts.add(payload.authorization.from.toLowerCase());
  assert.equal(await signerOf(x402, payload), 'contract', 'a wallet that was deployed since');
});

test('of a wallet that is known: the node is not asked again for an hour', async () => {
  await using node = await startChainNode();
  const x402 = await labOn(node);
  const owner = wallet();
  const { address } = wallet();
  node.faults.contracts.add(address.toLowerCase());
  for (let i = 0; i < 3; i++) assert.equal(await signerOf(x402, await foreign(owner, address)), 'contract');
  assert.equal(codeCalls(node), 1);
  await node.down();
  x402.clock.advance(3_599_000);
  assert.equal(await signerOf(x402, await foreign(owner, address)), 'contract');
});

test('by the payer’s own key: the node is not asked', async () => {
  await using node = await startChainNode();
  const x402 = await labOn(node);
  const owner = wallet();
  node.faults.contracts.add(owner.address.toLowerCase());
  assert.equal(await signerOf(x402, await foreign(owner, owner.address)), 'recovered');
  assert.equal(codeCalls(node), 0);
});

test('while it cannot be found out: the facilitator decides', async () => {
  await using node = await startChainNode();
  const x402 = await labOn(node);
  await node.down();
  assert.equal(await signerOf(x402, await foreign()), 'contract');
});

const PER_MINUTE = LIMITS.walletQuestionsPerMinute.max;

test(`the node is asked about at most ${PER_MINUTE} addresses a minute for one client; a stranger takes none of another’s`, async () => {
  await using node = await startChainNode();
  const x402 = await labOn(node);
  const owner = wallet();
  const ask = async (n: number, client = CLIENT) => {
    const address = `0x${n.toString(16).padStart(40, '0')}` as const;
    const read = await x402.protocol.read(v2(await foreign(owner, address)), client);
    return 'refused' in read ? 'refused' : read.signer;
  };
  const minute: string[] = [];
  for (let n = 1; n <= PER_MINUTE; n++) minute.push(await ask(n));
  assert.deepEqual(new Set(minute), new Set(['refused']));
  for (let n = 1; n <= 100; n++) assert.equal(await ask(1000 + n), 'contract', 'the facilitator decides');
  assert.equal(codeCalls(node), PER_MINUTE);
  assert.equal(await ask(2000, '203.0.113.9'), 'refused', 'of another client it is asked');
  x402.clock.advance(60_000);
  assert.equal(await ask(2001), 'refused');
});

test('the node is asked about at most two addresses at once for one client, and sixteen for all', async () => {
  await using node = await startChainNode();
  const x402 = await labOn(node);
  node.faults.hangs.add('eth_getCode');
  const payloads = await Promise.all(Array.from({ length: 40 }, () => foreign()));
  const ask = async (client: string, payload: Payload) => x402.protocol.read(v2(payload), client);
  const stranger = await Promise.all(payloads.slice(0, 10).map((payload) => ask('stranger', payload)));
  assert.equal(codeCalls(node), 2);
  const others = await Promise.all(payloads.slice(10).map((payload, n) => ask(`client ${n}`, payload)));
  assert.equal(codeCalls(node), 2 + 16);
  for (const read of [...stranger, ...others])
    assert.equal('signer' in read && read.signer, 'contract', 'the facilitator decides');
});
