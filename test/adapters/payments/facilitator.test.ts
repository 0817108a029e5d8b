import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PaymentPayloadV2Schema, PaymentRequirementsV2Schema } from '@x402/core/schemas';
import { extractDiscoveryInfo } from '@x402/extensions/bazaar';
import { PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import {
  type Behaviour,
  facilitatorDouble,
  faults,
  invalid,
  json,
  unsettled,
} from '#test/support/chain/facilitator-double.ts';
import { ACCEPTED, BASE_URL, lab, payloadOf, presented, UNREACHABLE_URL, v1, v2, wallet } from './lab.ts';

const NONCE_USED = 'invalid_exact_evm_nonce_already_used';
const TX = `0x${'ab'.repeat(32)}`;
/** No transaction has it. */
const ZERO = `0x${'0'.repeat(64)}`;

const unknownBy = (cause: string, transaction: string | null = null) => ({
  outcome: 'unknown',
  cause,
  transaction,
});

async function at(facilitatorUrl: string, facilitatorTimeoutMs = 5000) {
  const x402 = await lab({ x402: { facilitatorUrl, facilitatorTimeoutMs } });
  return { ...x402, pay: async () => presented(x402, v2(await payloadOf(wallet()))) };
}

test('a payment is verified, then settled once; after that its nonce is used', async () => {
  await using double = await facilitatorDouble();
  const { payments, pay } = await at(double.url);
  const payment = await pay();
  assert.deepEqual(await payments.verify(payment), { outcome: 'valid' });
  const transaction = `0x${'1'.padStart(64, '0')}`;
  assert.deepEqual(await payments.settle(payment), { outcome: 'settled', transaction });
  assert.deepEqual([...double.ledger], [[payment.nonce, transaction]]);
  assert.deepEqual(await payments.settle(payment), unknownBy(NONCE_USED));
  assert.deepEqual(await payments.verify(payment), { outcome: 'invalid', reason: NONCE_USED });
  assert.deepEqual(double.calls, { verify: 2, settle: 2, supported: 0 });
});

test('requests to the facilitator are version 2 with our terms, for every payment header', async () => {
  await using double = await facilitatorDouble();
  const x402 = await lab({ x402: { facilitatorUrl: double.url } });
  const payload = await payloadOf(wallet());
  const asked: unknown[] = [];
  const odd = { ...ACCEPTED, extra: { name: 'Other', version: '9' }, maxTimeoutSeconds: 999 };
  for (const header of [v1(payload), v2(payload, odd, { extensions: { stray: {} } })]) {
    const payment = await presented(x402, header);
    await x402.payments.verify(payment);
    asked.push(double.lastCall()?.body);
    await x402.payments.settle(payment);
    asked.push(double.lastCall()?.body);
  }
  const [first, ...others] = asked;
  for (const other of others) assert.deepEqual(other, first);
  const { x402Version, paymentPayload, paymentRequirements } = first as Record<string, object>;
  assert.equal(x402Version, 2);
  const parsed = PaymentPayloadV2Schema.parse(paymentPayload);
  assert.deepEqual(parsed.accepted, ACCEPTED);
  assert.deepEqual(PaymentRequirementsV2Schema.parse(paymentRequirements), ACCEPTED);
  assert.deepEqual(Object.keys(parsed.extensions ?? {}), ['bazaar']);
  const { from, to, nonce } = payload.authorization;
  const lower = { from: from.toLowerCase(), to: to.toLowerCase(), nonce };
  assert.deepEqual(parsed.payload, {
    signature: payload.signature,
    authorization: { ...payload.authorization, ...lower },
  });
});

test('a payment accepted with another price and payee is verified and settled with these', async () => {
  await using double = await facilitatorDouble();
  const payTo = '0x2222222222222222222222222222222222222222';
  const now = await lab({ x402: { facilitatorUrl: double.url, priceUsd: '0.01', payTo } });
  const payload = await payloadOf(wallet());
  const payment = await presented(now, v2(payload));
  const asked = async (operation: 'verify' | 'settle') => {
    await now.payments[operation](payment);
    return double.lastCall()?.body as { paymentPayload: { accepted: object }; paymentRequirements: object };
  };
  for (const operation of ['verify', 'settle'] as const) {
    const { paymentPayload, paymentRequirements } = await asked(operation);
    assert.deepEqual(paymentRequirements, ACCEPTED);
    assert.deepEqual(paymentPayload.accepted, ACCEPTED);
  }
  const transaction = TX;
  double.scriptSettle(() => json({ success: true, transaction, network: 'eip155:8453', amount: '10000' }));
  assert.equal(
    (await now.payments.settle(payment)).outcome,
    'unknown',
    'today’s price is not this payment’s',
  );
  double.scriptSettle(() => json({ success: true, transaction, network: 'eip155:8453', amount: '3000' }));
  assert.deepEqual(await now.payments.settle(payment), { outcome: 'settled', transaction });
});

test('the facilitator receives the route that the payer names, and execute/webhook if it names none of ours', async () => {
  await using double = await facilitatorDouble();
  const x402 = await lab({ x402: { facilitatorUrl: double.url } });
  const payload = await payloadOf(wallet());
  const guided = `${BASE_URL}${PAID_ROUTES['execute/guided-webhook'].path}`;
  const plain = `${BASE_URL}${PAID_ROUTES['execute/webhook'].path}`;
  const cases: readonly [object, string][] = [
    [{ resource: { url: guided } }, guided],
    [{ resource: { url: plain } }, plain],
    [{ resource: { url: 'https://elsewhere.example/x' } }, plain],
    [{}, plain],
  ];
  for (const [more, url] of cases) {
    await x402.payments.verify(await presented(x402, v2(payload, ACCEPTED, more)));
    const body = double.lastCall()?.body as { paymentPayload: never; paymentRequirements: never };
    const found = extractDiscoveryInfo(body.paymentPayload, body.paymentRequirements);
    assert.equal(found?.resourceUrl, url);
  }
});

test('verify: a complete refusal is returned with its code, if that is a known one', async () => {
  await using double = await facilitatorDouble();
  const { payments, pay } = await at(double.url);
  const payment = await pay();
  const cases: readonly [Behaviour, string][] = [
    [invalid('insufficient_funds'), 'insufficient_funds'],
    [invalid('invalid_exact_evm_signature', 400), 'invalid_exact_evm_signature'],
    [invalid('a_code_of_tomorrow'), 'invalid'],
    [invalid('Signature 0xabc is not valid'), 'invalid'],
    [() => json({ isValid: false }), 'invalid'],
    [() => json({ isValid: false, invalidReason: null }), 'invalid'],
  ];
  for (const [behaviour, reason] of cases) {
    double.scriptVerify(behaviour);
    assert.deepEqual(await payments.verify(payment), { outcome: 'invalid', reason });
  }
});

const NO_ANSWERS: Readonly<Record<string, Behaviour>> = {
  ...faults,
  'JSON 500 with a complete no': (call) => json({ ...no(call.payer), isValid: false }, 500),
  'JSON 500 with a yes': () => json({ isValid: true, success: true, transaction: TX, network: 'base' }, 500),
  'a redirect': () => ({ status: 307, body: '', headers: { location: '/elsewhere' } }),
  'a yes with status 400': () =>
    json({ isValid: true, success: true, transaction: TX, network: 'base' }, 400),
  'a list': () => json([true]),
  null: () => json(null),
  'a yes in words': () => json({ isValid: 'true', success: 'true', transaction: TX, network: 'base' }),
  'far too much': () => ({
    status: 200,
    body: `{"isValid":true,"success":true,"x":"${'x'.repeat(70_000)}"}`,
  }),
  'half of it': () => ({
    status: 200,
    body: '{"isValid":true,"success":true,"transaction":""}',
    headers: { 'content-length': '500' },
  }),
};
const no = (payer: string) => ({
  success: false,
  errorReason: 'insufficient_funds',
  invalidReason: 'insufficient_funds',
  transaction: '',
  network: 'eip155:8453',
  payer,
});

test('verify: a refusal caused by the facilitator’s failure is unavailable', async () => {
  await using double = await facilitatorDouble();
  const { payments, pay } = await at(double.url);
  const payment = await pay();
  const codes = [
    'invalid_exact_evm_transaction_simulation_failed',
    'asset_not_deployed_contract',
    'unexpected_verify_error',
  ];
  for (const code of codes) {
    double.scriptVerify(invalid(code), invalid(code, 400));
    assert.deepEqual(await payments.verify(payment), { outcome: 'unavailable' }, code);
    assert.deepEqual(await payments.verify(payment), { outcome: 'unavailable' }, code);
  }
});

test('verify: an incomplete answer is unavailable', async () => {
  await using double = await facilitatorDouble();
  const { payments, pay } = await at(double.url, 500);
  const payment = await pay();
  const cases = { ...NO_ANSWERS, 'of another payer': () => json({ isValid: true, payer: TX.slice(0, 42) }) };
  for (const [name, behaviour] of Object.entries(cases)) {
    // A request whose connection is closed is sent once more.
    double.scriptVerify(...(name === 'cut' ? [behaviour, behaviour] : [behaviour]));
    assert.deepEqual(await payments.verify(payment), { outcome: 'unavailable' }, name);
  }
  assert.equal(double.calls.verify, Object.keys(cases).length + 1);
});

test('settle: an incomplete answer is unknown, with a code and never a text', async () => {
  await using double = await facilitatorDouble();
  const { payments, pay } = await at(double.url, 500);
  const payment = await pay();
  for (const [name, behaviour] of Object.entries(NO_ANSWERS)) {
    double.scriptSettle(behaviour);
    const answer = await payments.settle(payment);
    assert.equal(answer.outcome, 'unknown', name);
    assert.match(answer.outcome === 'unknown' ? answer.cause : '', /^[a-z0-9_]{1,80}$/, name);
    if (name === 'half of it') assert.deepEqual(answer, unknownBy('facilitator_cut_off'));
  }
  assert.equal(double.calls.settle, Object.keys(NO_ANSWERS).length);
  assert.equal(double.ledger.size, 0);
});

test('settle: a code that may follow a transfer is unknown', async () => {
  await using double = await facilitatorDouble();
  const { payments, pay } = await at(double.url);
  const payment = await pay();
  const codes = [
    'settlement_pending',
    'invalid_exact_evm_transaction_failed',
    'invalid_exact_evm_transaction_simulation_failed',
    'invalid_exact_evm_transfer_event_mismatch',
    'invalid_transaction_state',
    'unexpected_settle_error',
    'duplicate_settlement',
    'smart_wallet_deployment_failed',
    'invalid_payload',
  ];
  for (const cause of codes) {
    double.scriptSettle(unsettled(cause));
    assert.deepEqual(await payments.settle(payment), unknownBy(cause));
  }
  const texts = [
    'authorization with this nonce was used: value 3000, signature 0xab',
    'a_code_of_tomorrow',
    undefined,
    '',
  ];
  for (const text of texts) {
    double.scriptSettle(unsettled(text));
    assert.deepEqual(await payments.settle(payment), unknownBy('settlement_failed'));
  }
});

test('settle: a terminal code is rejected with status 200 or 4xx, and unknown with 5xx', async () => {
  await using double = await facilitatorDouble();
  const { payments, pay } = await at(double.url);
  const payment = await pay();
  const codes = [
    'invalid_exact_evm_signature',
    'invalid_exact_evm_recipient_mismatch',
    'invalid_exact_evm_payload_authorization_value_mismatch',
    'invalid_exact_evm_payload_authorization_valid_before',
    'invalid_exact_evm_payload_authorization_valid_after',
    'invalid_exact_evm_insufficient_balance',
    'invalid_exact_evm_network_mismatch',
    'insufficient_funds',
    'invalid_exact_evm_payload_signature',
    'invalid_network',
  ];
  for (const reason of codes) {
    double.scriptSettle(
      unsettled(reason),
      unsettled(reason, 402),
      unsettled(reason, 500),
      unsettled(reason, 429),
    );
    assert.deepEqual(await payments.settle(payment), { outcome: 'rejected', reason });
    assert.deepEqual(await payments.settle(payment), { outcome: 'rejected', reason });
    assert.deepEqual(await payments.settle(payment), unknownBy('facilitator_status_500'));
    assert.deepEqual(await payments.settle(payment), unknownBy('facilitator_status_429'));
  }
});

test('settle: a used nonce is a question for the chain, whatever the status', async () => {
  await using double = await facilitatorDouble();
  const { payments, pay } = await at(double.url);
  const payment = await pay();
  double.scriptSettle(unsettled(NONCE_USED), unsettled(NONCE_USED, 400), unsettled(NONCE_USED, 503));
  assert.deepEqual(await payments.settle(payment), unknownBy(NONCE_USED));
  assert.deepEqual(await payments.settle(payment), unknownBy(NONCE_USED));
  assert.deepEqual(await payments.settle(payment), unknownBy('facilitator_status_503'));
});

test('settle: the transaction of every inconclusive answer is kept, and makes a refusal inconclusive', async () => {
  await using double = await facilitatorDouble();
  const { payments, pay } = await at(double.url);
  const payment = await pay();
  const failing = { success: false, network: 'eip155:8453', payer: payment.payer };
  const cases: readonly (readonly [answer: object, status: number, cause: string])[] = [
    [{ ...failing, errorReason: 'settlement_pending' }, 200, 'settlement_pending'],
    [{ ...failing, errorReason: 'insufficient_funds' }, 200, 'insufficient_funds'],
    [{ ...failing, errorReason: 'insufficient_funds' }, 500, 'facilitator_status_500'],
    [{ success: true, network: 'eip155:1' }, 200, 'facilitator_answer_mismatch'],
    [{ success: true }, 402, 'facilitator_answer_malformed'],
  ];
  for (const [answer, status, cause] of cases) {
    double.scriptSettle(() => json({ ...answer, transaction: TX.toUpperCase().replace('0X', '0x') }, status));
    assert.deepEqual(await payments.settle(payment), unknownBy(cause, TX));
  }
  double.scriptSettle(() => json({ ...failing, errorReason: 'settlement_pending', transaction: 'soon' }));
  assert.deepEqual(await payments.settle(payment), unknownBy('settlement_pending'));
});

test('settle: a success for another payer, network or amount is unknown', async () => {
  await using double = await facilitatorDouble();
  const { payments, pay } = await at(double.url);
  const payment = await pay();
  const good = {
    success: true,
    transaction: TX,
    network: 'eip155:8453',
    payer: payment.payer,
    amount: '3000',
  };
  const others = [
    { payer: TX.slice(0, 42) },
    { network: 'eip155:84532' },
    { network: 'base-sepolia' },
    { amount: '1' },
  ];
  for (const other of others) {
    double.scriptSettle(() => json({ ...good, ...other }));
    const cause = 'facilitator_answer_mismatch';
    assert.deepEqual(await payments.settle(payment), unknownBy(cause, TX));
  }
});

test('settle: a success in other spellings is settled; without a transaction hash the chain decides', async () => {
  await using double = await facilitatorDouble();
  const { payments, pay } = await at(double.url);
  const payment = await pay();
  const good = { success: true, transaction: TX.toUpperCase().replace('0X', '0x'), network: 'eip155:8453' };
  const spellings: readonly object[] = [
    { payer: payment.payer.toUpperCase().replace('0X', '0x') },
    { network: 'base' },
    { payer: null, amount: null, errorReason: null },
  ];
  for (const spelling of spellings) {
    double.scriptSettle(() => json({ ...good, ...spelling }));
    assert.deepEqual(await payments.settle(payment), { outcome: 'settled', transaction: TX });
  }
  for (const transaction of ['', null, undefined]) {
    double.scriptSettle(() => json({ ...good, transaction }));
    assert.deepEqual(await payments.settle(payment), unknownBy('facilitator_transaction_missing'));
  }
  for (const transaction of ['0x', 'see the explorer', `${TX}00`, TX.slice(2), ZERO]) {
    double.scriptSettle(() => json({ ...good, transaction }));
    assert.deepEqual(await payments.settle(payment), unknownBy('facilitator_answer_malformed'));
  }
  double.scriptSettle(() => json({ success: false, errorReason: 'insufficient_funds', transaction: ZERO }));
  const refused = { outcome: 'rejected', reason: 'insufficient_funds' };
  assert.deepEqual(await payments.settle(payment), refused);
});

test('an unreachable facilitator is reported as unavailable in time', async () => {
  const { payments, pay } = await at(UNREACHABLE_URL);
  const payment = await pay();
  assert.deepEqual(await payments.verify(payment), { outcome: 'unavailable' });
  assert.deepEqual(await payments.settle(payment), unknownBy('facilitator_unreachable'));
});
