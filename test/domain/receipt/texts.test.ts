import assert from 'node:assert/strict';
import { test } from 'node:test';
import { statementOf } from '#src/domain/receipt/texts.ts';
import { payloadOf } from '#test/support/given/given-receipt.ts';

const payload = await payloadOf();

test('the answer is the status, else the error category, else `no answer`', () => {
  const answers = [
    { responseStatus: 404, errorCategory: 'target_client_error' },
    { responseStatus: null, errorCategory: 'timeout' },
    { responseStatus: null, errorCategory: null },
  ] as const;
  const texts = answers.map(
    (one) => statementOf({ ...payload, outcome: { ...payload.outcome, ...one } }).answer,
  );
  assert.deepEqual(texts, ['answer 404', 'timeout', 'no answer']);
  const cut = {
    ...payload,
    v: 3 as const,
    log: null,
    outcome: { ...payload.outcome, truncated: 'unknown' as const },
  };
  assert.equal(statementOf(cut).answer, 'answer 200, perhaps cut off');
});

test('the payment is amount, asset and network; without one, `none` and the mode', () => {
  assert.ok(payload.payment !== null);
  const { amount, asset, network } = payload.payment;
  assert.equal(statementOf(payload).payment, `${amount} of ${asset} on ${network}`);
  assert.equal(statementOf({ ...payload, payment: null, mode: 'demo' }).payment, 'none (demo mode)');
});
