import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodePaymentResponseHeader } from '@x402/core/http';
import {
  decodeSignedOffers,
  extractOffersFromPaymentRequired,
  extractReceiptFromResponse,
  verifyReceiptMatchesOffer,
  verifyReceiptSignatureJWS,
} from '@x402/extensions/offer-receipt';
import { decodeXPaymentResponse } from 'x402/shared';
import { PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import { verifySignedReceipt } from '#src/domain/receipt/verify.ts';
import type { Settlement } from '#src/ports/payment-protocol.ts';
import { primitives } from '#test/support/given/primitives.ts';
import { BASE_URL, challenged, jwsOf, KEY_URL, lab, offerKey, PAY_TO, PUBLIC_KEY, USDC } from './lab.ts';

const PAYER = '0x4444444444444444444444444444444444444444';
const TX = `0x${'ab'.repeat(32)}`;

const settlement = (changes: Partial<Settlement> = {}): Settlement => ({
  route: 'execute/webhook',
  payment: {
    scheme: 'exact',
    network: 'eip155:8453',
    asset: USDC.toLowerCase(),
    amount: '3000',
    payTo: PAY_TO,
    payer: PAYER,
    transaction: TX,
    payloadHash: 'c'.repeat(64),
  },
  x402Version: 2,
  delivered: true,
  completedAt: new Date().toISOString(),
  ...changes,
});

test('a delivered call: the settlement with a signed receipt that matches the offer', async () => {
  const x402 = await lab();
  const given = settlement();
  const headers = await x402.protocol.settled(given);
  assert.deepEqual(Object.keys(headers), ['PAYMENT-RESPONSE']);
  const { extensions, ...rest } = decodePaymentResponseHeader(headers['PAYMENT-RESPONSE'] ?? '');
  const facts = { transaction: TX, network: 'eip155:8453', payer: PAYER, amount: '3000' };
  assert.deepEqual(rest, { success: true, ...facts });
  assert.deepEqual(Object.keys(extensions ?? {}), ['offer-receipt']);
  const receipt = extractReceiptFromResponse(new Response('', { headers }));
  if (receipt === undefined) throw new Error('no receipt');
  assert.deepEqual(await verifyReceiptSignatureJWS(jwsOf(receipt), PUBLIC_KEY), {
    version: 1,
    network: 'eip155:8453',
    resourceUrl: BASE_URL + PAID_ROUTES['execute/webhook'].path,
    payer: PAYER,
    issuedAt: Math.floor(Date.parse(given.completedAt) / 1000),
    transaction: TX,
  });
  const { required } = await challenged(x402);
  const [offer] = decodeSignedOffers(extractOffersFromPaymentRequired(required));
  if (offer === undefined) throw new Error('no offer');
  assert.equal(verifyReceiptMatchesOffer(receipt, offer, [PAYER]), true);
  assert.equal(verifyReceiptMatchesOffer(receipt, offer, [PAY_TO]), false);
});

test('a call that was not delivered is settled without a receipt of delivery', async () => {
  const { protocol } = await lab();
  const headers = await protocol.settled(settlement({ delivered: false }));
  const response = decodePaymentResponseHeader(headers['PAYMENT-RESPONSE'] ?? '');
  assert.equal(response.success, true);
  assert.equal('extensions' in response, false);
});

test('a payer of version 1 receives X-PAYMENT-RESPONSE as well', async () => {
  const { protocol } = await lab();
  const headers = await protocol.settled(settlement({ x402Version: 1 }));
  assert.deepEqual(Object.keys(headers).sort(), ['PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE']);
  assert.deepEqual(decodeXPaymentResponse(headers['X-PAYMENT-RESPONSE'] ?? ''), {
    success: true,
    transaction: TX,
    network: 'base',
    payer: PAYER,
  });
  const second = await protocol.settled(settlement({ x402Version: 2 }));
  assert.equal('X-PAYMENT-RESPONSE' in second, false);
});

test('an unknown transaction is an empty string, and not a member of the receipt', async () => {
  const { protocol } = await lab();
  const given = settlement({ x402Version: 1 });
  const headers = await protocol.settled({ ...given, payment: { ...given.payment, transaction: null } });
  assert.equal(decodePaymentResponseHeader(headers['PAYMENT-RESPONSE'] ?? '').transaction, '');
  assert.equal(decodeXPaymentResponse(headers['X-PAYMENT-RESPONSE'] ?? '').transaction, '');
  const receipt = extractReceiptFromResponse(new Response('', { headers }));
  if (receipt === undefined) throw new Error('no receipt');
  assert.equal('transaction' in (await verifyReceiptSignatureJWS(jwsOf(receipt), PUBLIC_KEY)), false);
});

test('the same settlement gives the same bytes at any time and in every process', async () => {
  const given = settlement({ x402Version: 1, completedAt: '2026-01-02T03:04:05.678Z' });
  const first = await (await lab()).protocol.settled(given);
  assert.deepEqual(await (await lab()).protocol.settled(given), first);
});

test('a payment receipt and an offer are not accepted as a receipt of ours', async () => {
  const x402 = await lab();
  const headers = await x402.protocol.settled(settlement());
  const receipt = extractReceiptFromResponse(new Response('', { headers }));
  const offers = extractOffersFromPaymentRequired((await challenged(x402)).required);
  const all = [receipt, ...offers];
  assert.equal(all.length, 2);
  for (const signed of all) {
    const jws = signed?.signature ?? '';
    const [head = ''] = jws.split('.');
    assert.equal(JSON.parse(Buffer.from(head, 'base64url').toString()).kid, KEY_URL);
    // Also by a verifier that uses the key's URL as its id.
    const keys = [offerKey.record, { ...offerKey.record, keyId: KEY_URL }];
    const report = await verifySignedReceipt(
      { jws, receiptId: null, jobId: null, keys, job: null, log: null },
      primitives,
    );
    assert.equal(report.ok, false);
    assert.equal(report.checks.find(({ name }) => name === 'signature_valid')?.ok, false);
  }
});
