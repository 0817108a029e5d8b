// A payment that is kept until its run is due: its signed authorization and nothing else of the header.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reopenPayment, writePayment } from '#src/adapters/payments/authorization.ts';
import { isRefused, reasonOf } from '#src/domain/refusal.ts';
import { presentedPayment } from '#test/support/chain/fakes-payments.ts';

const authorization = {
  from: `0x${'a'.repeat(40)}`,
  to: `0x${'b'.repeat(40)}`,
  value: '3000',
  validAfter: '0',
  validBefore: '1767323165',
  nonce: `0x${'7'.repeat(64)}`,
};
const signed = { authorization, signature: `0x${'1'.repeat(130)}` };
const payment = presentedPayment({ carried: { signed, resourceUrl: null }, identifier: 'x'.repeat(100) });

test('what is kept is under 1 kB', () => {
  assert.ok(writePayment(payment).length < 1000);
});

test('of another network or asset, or of another form: refused, with the reason', async () => {
  const reasonWith = async (terms: object, text = writePayment(payment)) => {
    const opened = await reopenPayment({ terms, hasCode: async () => false } as never, text);
    return isRefused(opened) ? reasonOf(opened) : 'opened';
  };
  const { network, asset } = payment;
  assert.equal(await reasonWith({ network: 'eip155:1', asset }), 'network_mismatch');
  assert.equal(await reasonWith({ network, asset: '0x0' }), 'asset_mismatch');
  assert.equal(await reasonWith({ network, asset }, 'no JSON'), 'invalid_payload');
});
