// Amounts are compared as whole millionths: no float ever says that a price is within a limit.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { microUsd, showUsd } from '#src/domain/payment/price.ts';

for (const [text, micro] of [
  ['0.003', 3000n],
  ['$0.003', 3000n],
  ['0.0030', 3000n],
  ['$0.003000000', 3000n],
  ['0.000001', 1n],
  ['0', 0n],
  ['12', 12_000_000n],
  ['007.5', 7_500_000n],
  ['999999999.999999', 999_999_999_999_999n],
] as const) {
  test(`${text} is ${micro} millionths`, () => {
    assert.equal(microUsd(text), micro);
  });
}

test('what is no amount, or finer than a millionth, is not rounded to one', () => {
  for (const text of [
    '',
    '$',
    '.5',
    '1.',
    '-1',
    '+1',
    '1e3',
    '0.0000001',
    '0,003',
    ' 1',
    '1\n',
    '$$1',
    '1 USD',
  ])
    assert.equal(microUsd(text), null, JSON.stringify(text));
});

test('shown in the shortest way, and read again as the same amount', () => {
  assert.deepEqual([3000n, 0n, 1_500_000n, 1n].map(showUsd), ['$0.003', '$0', '$1.5', '$0.000001']);
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 20n }), (micro) => {
      assert.equal(microUsd(showUsd(micro)), micro);
    }),
  );
});
