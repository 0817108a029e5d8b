// What a receipt says, in words.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { statementOf } from '#src/domain/receipt/statement.ts';
import { payloadOf } from '#test/support/given-receipt.ts';

const payload = await payloadOf();

test('an answer is told by its status, a failure without one by its category, else that there was none', () => {
  const answers = [
    { responseStatus: 404, errorCategory: 'target_client_error' },
    { responseStatus: null, errorCategory: 'timeout' },
    { responseStatus: null, errorCategory: null },
  ] as const;
  const told = answers.map(
    (one) => statementOf({ ...payload, outcome: { ...payload.outcome, ...one } }).answer,
  );
  assert.deepEqual(told, ['answer 404', 'timeout', 'no answer']);
});

test('a payment is told with its amount, asset and network, or that there is none, and in which mode', () => {
  assert.ok(payload.payment !== null);
  const { amount, asset, network } = payload.payment;
  assert.equal(statementOf(payload).payment, `${amount} of ${asset} on ${network}`);
  assert.equal(statementOf({ ...payload, payment: null, mode: 'demo' }).payment, 'none (demo mode)');
});
