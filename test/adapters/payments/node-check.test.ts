// The start with a node: its chain and the asset's contract are compared with the configuration, and what an asset is comes
// from its contract.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { domainSeparator, type Hex } from 'viem';
import { UnusableTerms } from '#src/adapters/payments/requirements.ts';
import { Cancel, sleep } from '#src/lib/time.ts';
import { facilitatorDouble } from '#test/support/chain/facilitator-double.ts';
import { startChainNode, type Token, USDC_TOKEN } from '#test/support/chain/scripted-node.ts';
import { manualClock } from '#test/support/world/fakes.ts';
import {
  ACCEPTED,
  challenged,
  lab,
  PAY_TO,
  payloadOf,
  presented,
  UNREACHABLE_URL,
  USDC,
  v2,
  wallet,
} from './lab.ts';

const OTHER = '0x2222222222222222222222222222222222222222';
const ODD = { network: 'eip155:31337', asset: OTHER };

async function withToken(token: Partial<Token>, settings: object = ODD, chainId = 31337) {
  await using node = await startChainNode();
  Object.assign(node.faults, { chainId, token: { ...USDC_TOKEN, ...token } });
  const x402 = await lab({ x402: { rpcUrl: node.url, ...settings } });
  const [asked] = (await challenged(x402)).required.accepts;
  return { amount: asked?.amount, name: asked?.extra.name, version: asked?.extra.version, lines: x402.lines };
}

const refusal = (setting: UnusableTerms['setting'], words: RegExp) => (error: unknown) => {
  assert.ok(error instanceof UnusableTerms, String(error));
  assert.deepEqual([error.setting, words.test(error.message)], [setting, true], error.message);
  return true;
};

const separatorOf = (name: string, version: string, chainId = 31337): Hex =>
  domainSeparator({ domain: { name, version, chainId, verifyingContract: OTHER } });

test('the decimals and the domain of an asset are read from its contract', async () => {
  const read = await withToken({ name: 'Euro', version: '7', decimals: 18 });
  assert.deepEqual(read, { amount: '3000000000000000', name: 'Euro', version: '7', lines: [] });
});

test('also those of an asset that the package knows', async () => {
  const base = { network: 'eip155:8453', asset: null };
  const read = await withToken({ name: 'USD Coin', version: '3', decimals: 7 }, base, 8453);
  assert.deepEqual(read, { amount: '30000', name: 'USD Coin', version: '3', lines: [] });
});

test('of several names a contract states the one that it signs with', async () => {
  const signed = { name: 'Signed', version: '4' };
  const cases: readonly [Partial<Token>, { name: string; version: string }][] = [
    [{ name: 'Shown', described: signed, separator: separatorOf('Signed', '4') }, signed],
    [{ name: 'Shown', version: null, described: signed, separator: null }, signed],
    [
      { name: 'Shown', version: '9', separator: null },
      { name: 'Shown', version: '9' },
    ],
    [
      { name: 'Bare', version: null, separator: separatorOf('Bare', '1') },
      { name: 'Bare', version: '1' },
    ],
    [
      { name: 'Bare', version: null, separator: separatorOf('Bare', '2') },
      { name: 'Bare', version: '2' },
    ],
  ];
  for (const [token, { name, version }] of cases) {
    const read = await withToken(token);
    assert.deepEqual([read.name, read.version], [name, version]);
  }
  // The package knows another name than the contract states.
  const known = { name: 'Old name', separator: domainSeparatorOfUsdc() };
  const read = await withToken(known, { network: 'eip155:8453', asset: USDC }, 8453);
  assert.deepEqual([read.name, read.version], ['USD Coin', '2']);
});

const domainSeparatorOfUsdc = (): Hex =>
  domainSeparator({ domain: { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: USDC } });

test('a contract that takes no authorizations, or whose domain cannot be determined, is refused', async () => {
  const cases: readonly [Partial<Token>, RegExp][] = [
    [{ takesAuthorizations: false }, /is 0x2222.*takes no EIP-3009 authorizations/],
    [{ decimals: null }, /takes no EIP-3009 authorizations/],
    [{ name: null }, /EIP-712 domain cannot be determined/],
    [{ version: null, separator: null }, /EIP-712 domain cannot be determined/],
    [{ separator: separatorOf('Another', '2') }, /EIP-712 domain cannot be determined/],
    [{ separator: separatorOf('USD Coin', '2', 1) }, /EIP-712 domain cannot be determined/],
  ];
  for (const [token, words] of cases) await assert.rejects(withToken(token), refusal('asset', words));
});

test('a node of another chain is refused with both ids', async () => {
  const both = /^serves chain 8453, and X402_NETWORK is eip155:31337$/;
  await assert.rejects(withToken({}, ODD, 8453), refusal('rpcUrl', both));
});

test('a known asset starts without its node, and paid calls are not taken before it has answered', async () => {
  await using facilitator = await facilitatorDouble();
  await using node = await startChainNode();
  await node.down();
  const clock = manualClock(Date.now());
  const x402 = await lab({ x402: { rpcUrl: node.url, facilitatorUrl: facilitator.url }, clock });
  const logged = () => x402.lines.map(({ level, message }) => `${level} ${message}`);
  assert.deepEqual(logged(), [
    'warn The node of X402_RPC_URL has given no usable answer about the asset since the start: paid calls answer 503, nothing is charged. The log states why.',
  ]);
  assert.deepEqual((await challenged(x402)).required.accepts, [ACCEPTED]);
  const payment = await presented(x402, v2(await payloadOf(wallet())));
  assert.deepEqual(await x402.payments.verify(payment), { outcome: 'unavailable' });
  assert.deepEqual(await x402.scan.health(), { ok: false, problem: 'no_answer' });
  assert.equal(facilitator.calls.verify, 0);
  await node.up();
  // At most one check a second.
  assert.deepEqual(await x402.payments.verify(payment), { outcome: 'unavailable' });
  clock.advance(1000);
  const both = await Promise.all([x402.payments.verify(payment), x402.payments.verify(payment)]);
  assert.deepEqual(both, [{ outcome: 'valid' }, { outcome: 'valid' }]);
  assert.equal(node.asked.filter(({ method }) => method === 'eth_chainId').length, 1);
  await node.down();
  assert.deepEqual(await x402.payments.verify(payment), { outcome: 'valid' }, 'checked once');
  assert.deepEqual(logged().slice(1), [
    'info the node of the chain answers, and the books are compared with the chain again',
  ]);
});

test('a node that shows its blocks and not the asset: no paid call is taken, and health says so until it is checked', async () => {
  await using facilitator = await facilitatorDouble();
  await using node = await startChainNode();
  node.faults.token = { ...USDC_TOKEN, decimals: null, takesAuthorizations: false };
  node.faults.reverts = { code: -32603, message: 'Internal error' };
  const clock = manualClock(Date.now());
  const x402 = await lab({ x402: { rpcUrl: node.url, facilitatorUrl: facilitator.url }, clock });
  const payment = await presented(x402, v2(await payloadOf(wallet())));
  assert.deepEqual(await x402.payments.verify(payment), { outcome: 'unavailable' });
  assert.deepEqual(await x402.scan.health(), { ok: false, problem: 'unchecked' });
  node.faults.token = USDC_TOKEN;
  clock.advance(1000);
  assert.deepEqual(await x402.scan.health(), { ok: true });
  assert.deepEqual(await x402.payments.verify(payment), { outcome: 'valid' });
});

for (const [what, change, problem] of [
  ['serves another chain', { chainId: 1 }, /serves chain 1, and X402_NETWORK is eip155:8453/],
  ['states another domain', { token: { ...USDC_TOKEN, version: '3' } }, /another EIP-712 domain.*restart/],
] as const) {
  test(`a node that answers after the start and ${what}: no paid call is taken, and the log says why once`, async () => {
    await using facilitator = await facilitatorDouble();
    await using node = await startChainNode();
    await node.down();
    const clock = manualClock(Date.now());
    const x402 = await lab({ x402: { rpcUrl: node.url, facilitatorUrl: facilitator.url }, clock });
    await node.up();
    Object.assign(node.faults, change);
    const payment = await presented(x402, v2(await payloadOf(wallet())));
    for (let i = 0; i < 3; i++) {
      clock.advance(1000);
      assert.deepEqual(await x402.payments.verify(payment), { outcome: 'unavailable' });
    }
    const errors = x402.lines.filter(({ level }) => level === 'error');
    assert.equal(errors.length, 1);
    assert.match(JSON.stringify(errors[0]?.fields), problem);
    assert.equal(facilitator.calls.verify, 0);
  });
}

test('what is paid, to whom and what the payee holds is stated for people; without the node, all but the balance', async () => {
  await using node = await startChainNode();
  const x402 = await lab({ x402: { rpcUrl: node.url } });
  const stated = { price: '$0.003', payee: PAY_TO, network: 'eip155:8453', token: USDC };
  assert.deepEqual(await x402.describe(), { ...stated, balance: '12.5' });
  await node.down();
  assert.deepEqual(await x402.describe(), { ...stated, balance: null });
});

test('any other asset does not start without its node: after 30 s the start is refused', async () => {
  const clock = manualClock(Date.now());
  const starting = lab({ x402: { ...ODD, rpcUrl: `${UNREACHABLE_URL}/api-key-secret` }, clock });
  await assert.rejects(letPassSlowly(clock, starting), (error) => {
    assert.doesNotMatch(String(error), /api-key/);
    return refusal('rpcUrl', /^does not answer: the decimals/)(error);
  });
  assert.ok(clock.monotonic() >= 30_000);
});

test('a stop ends the wait for the node', async () => {
  await using node = await startChainNode();
  node.faults.hangs.add('eth_chainId');
  const stopping = new Cancel();
  const starting = lab({ x402: { ...ODD, rpcUrl: node.url }, stopping });
  setTimeout(() => stopping.abort(), 50);
  await assert.rejects(starting, refusal('rpcUrl', /does not answer/));
});

/** The node's refusals are real: each pause begins when one has arrived. */
async function letPassSlowly<T>(clock: ReturnType<typeof manualClock>, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const settle = () => {
    isSettled = true;
  };
  promise.then(settle, settle);
  while (!isSettled) {
    clock.advanceToNext();
    await sleep(1);
  }
  return promise;
}
