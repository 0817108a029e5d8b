// Payment terms from the settings and the facts of the asset: valid networks, assets and prices.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  assetOf,
  paymentTerms,
  requirementsOf,
  UnusableTerms,
  type X402Settings,
} from '#src/adapters/payments/requirements.ts';
import { ACCEPTED, PAY_TO, UNREACHABLE_URL } from './lab.ts';

const OTHER = '0x2222222222222222222222222222222222222222';
const BASE: X402Settings = {
  payTo: PAY_TO,
  facilitatorUrl: UNREACHABLE_URL,
  network: 'eip155:8453',
  priceUsd: '0.003',
  asset: null,
  rpcUrl: 'http://127.0.0.1:9',
  facilitatorTimeoutMs: 5000,
  login: null,
};

const termsOf = (settings: X402Settings) => {
  const asset = assetOf(settings);
  return paymentTerms(settings, asset, asset.known ?? assert.fail());
};

test('the price in units of the network’s USDC, with its EIP-712 domain', () => {
  assert.deepEqual(termsOf(BASE).requirements, ACCEPTED);
  const sepolia = termsOf({ ...BASE, network: 'eip155:84532', priceUsd: '1' });
  assert.deepEqual(sepolia.requirements.extra, { name: 'USDC', version: '2', paymentFlow: 'upfront' });
  assert.deepEqual([sepolia.amount, sepolia.networkV1, sepolia.chainId], ['1000000', 'base-sepolia', 84532]);
});

test('the price in units of an asset with other decimals', () => {
  const settings = { ...BASE, asset: OTHER };
  const asset = assetOf(settings);
  assert.equal(asset.known, null);
  const facts = { decimals: 18, domain: { name: 'Other', version: '7' } };
  const { amount, requirements } = paymentTerms(settings, asset, facts);
  assert.deepEqual(
    [amount, requirements.asset, requirements.extra],
    ['3000000000000000', OTHER, { ...facts.domain, paymentFlow: 'upfront' }],
  );
});

test('unusable terms are refused with the name of the setting', () => {
  const cases: readonly [Partial<X402Settings>, UnusableTerms['setting'], RegExp][] = [
    [{ network: 'eip155:31337' }, 'network', /X402_ASSET/],
    // The network's asset does not support EIP-3009 authorizations.
    [{ network: 'eip155:4326' }, 'network', /EIP-3009/],
    [{ network: 'eip155:4326', asset: '0xFAfDdbb3FC7688494971a79cc65DCa3EF82079E7' }, 'asset', /EIP-3009/],
    [{ priceUsd: '0.0000001' }, 'priceUsd', /6 decimals/],
    [{ priceUsd: '0.0030001' }, 'priceUsd', /6 decimals/],
    [{ priceUsd: '0' }, 'priceUsd', /6 decimals/],
  ];
  for (const [change, setting, words] of cases) {
    assert.throws(
      () => termsOf({ ...BASE, ...change }),
      (error) => error instanceof UnusableTerms && error.setting === setting && words.test(error.message),
      JSON.stringify(change),
    );
  }
  assert.equal(termsOf({ ...BASE, priceUsd: '0.00300000' }).amount, '3000');
  assert.equal(termsOf({ ...BASE, priceUsd: '10' }).amount, '10000000');
});

test('requirements of a payment: its amount and payee; our payee in the configured spelling', () => {
  const payTo = '0x52908400098527886E0F7030069857D2E4169EE7';
  const terms = termsOf({ ...BASE, payTo });
  const ours = { amount: '3000', payTo: payTo.toLowerCase() };
  assert.deepEqual(requirementsOf(terms, ours), terms.requirements);
  const before = { amount: '2500', payTo: OTHER };
  assert.deepEqual(requirementsOf(terms, before), { ...terms.requirements, ...before });
});
