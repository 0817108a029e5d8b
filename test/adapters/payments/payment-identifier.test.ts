// The extension payment-identifier: offered by every 402, read from payments of version 2, refused where its id breaks the
// extension's own rule.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  appendPaymentIdentifierToExtensions,
  generatePaymentId,
  isPaymentIdentifierExtension,
  isPaymentIdentifierRequired,
  isValidPaymentId,
  PAYMENT_IDENTIFIER,
  validatePaymentIdentifier,
} from '@x402/extensions/payment-identifier';
import { isRefused } from '#src/domain/refusal.ts';
import { facilitatorDouble } from '#test/support/chain/facilitator-double.ts';
import { ACCEPTED, CLIENT, challenged, lab, payloadOf, presented, v1, v2, wallet } from './lab.ts';

const x402 = await lab();
const payload = await payloadOf(wallet());
const withExtension = (extension: unknown) =>
  v2(payload, ACCEPTED, { extensions: { [PAYMENT_IDENTIFIER]: extension } });

test('every 402 offers it, not as required', async () => {
  for (const route of ['execute/webhook', 'execute/guided-webhook'] as const) {
    const { required } = await challenged(x402, { route });
    const offered = required.extensions?.[PAYMENT_IDENTIFIER];
    assert.equal(isPaymentIdentifierExtension(offered), true);
    assert.equal(isPaymentIdentifierRequired(offered), false);
    for (const id of [
      'a'.repeat(16),
      'Z_-9'.repeat(32),
      'a'.repeat(15),
      'a'.repeat(129),
      `${'a'.repeat(16)}.`,
    ]) {
      const { valid } = validatePaymentIdentifier({ ...(offered as object), info: { required: false, id } });
      assert.equal(valid, isValidPaymentId(id), id);
    }
  }
});

test('the id that the stock client appends is read; it changes neither identity nor hash of the payment', async () => {
  const bare = await presented(x402, v2(payload));
  assert.equal(bare.identifier, null);
  for (const id of [generatePaymentId(), 'a'.repeat(16), 'Z_-9'.repeat(32)]) {
    const extensions = appendPaymentIdentifierToExtensions(
      structuredClone((await challenged(x402)).required.extensions ?? {}),
      id,
    );
    const named = await presented(x402, v2(payload, ACCEPTED, { extensions }));
    assert.deepEqual(named, { ...bare, identifier: id });
  }
});

test('no id: a client that repeats our offer, other extensions, version 1', async () => {
  const { extensions } = (await challenged(x402)).required;
  for (const header of [
    v2(payload, ACCEPTED, { extensions }),
    v2(payload, ACCEPTED, { extensions: {} }),
    v2(payload, ACCEPTED, { extensions: null }),
    v2(payload, ACCEPTED, { extensions: { other: { info: { id: 'x' } } } }),
    withExtension(null),
    withExtension({ info: {} }),
    v1(payload, { extensions: { [PAYMENT_IDENTIFIER]: { info: { id: generatePaymentId() } } } }),
  ]) {
    assert.equal((await presented(x402, header)).identifier, null);
  }
});

test('invalid_request: an id that breaks the rule of the extension, named by its place', async () => {
  const ids = ['', 'a'.repeat(15), 'a'.repeat(129), 'sixteen chars ok?', 'ümlautümlautümla', 5, null, {}];
  const cases: readonly (readonly [unknown, string])[] = [
    ...ids.map((id) => [{ info: { required: false, id } }, '/info/id'] as const),
    ...['text', 7, [], {}, { info: null }, { id: generatePaymentId() }].map(
      (extension) => [extension, '/info'] as const,
    ),
  ];
  for (const [extension, place] of cases) {
    const read = await x402.protocol.read(withExtension(extension), CLIENT);
    assert.ok(isRefused(read), JSON.stringify(extension));
    assert.equal(read.refused, 'invalid_request');
    const [detail, ...others] = read.details as { path: string; message: string }[];
    assert.deepEqual([detail?.path, others], [`/extensions/payment-identifier${place}`, []]);
    assert.doesNotMatch(JSON.stringify(read), /sixteen|mlaut/);
  }
});

test('a schema that the client sends is not evaluated', async () => {
  const schema = { properties: { id: { pattern: '^(a+)+$' } }, $ref: 'https://elsewhere.example/' };
  const id = `${'a'.repeat(60)}_`;
  const begun = performance.now();
  assert.equal((await presented(x402, withExtension({ info: { id }, schema }))).identifier, id);
  assert.ok(performance.now() - begun < 30_000);
});

test('the facilitator gets no identifier: a new payment of the same id is another payment to it', async () => {
  await using double = await facilitatorDouble();
  const { payments } = await lab({ x402: { facilitatorUrl: double.url } });
  const header = withExtension({ info: { id: generatePaymentId() } });
  await payments.verify(await presented(x402, header));
  assert.doesNotMatch(JSON.stringify(double.lastCall()?.body), /payment-identifier|pay_/);
});
