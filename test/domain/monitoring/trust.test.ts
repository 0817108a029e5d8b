import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type TrustFacts, trustScore, trustSignals } from '#src/domain/monitoring/trust.ts';
import type { CheckpointProblem } from '#src/domain/transparency/checkpoint.ts';

/** As configured, not as by default. */
const OFFER = { scheme: 'exact', network: 'eip155:84532', price: '$0.01' };

const fresh: TrustFacts = {
  paymentEnforced: true,
  storage: { driver: 'sqlite+pglite', durable: true },
  recentSucceeded: 0,
  recentFailed: 0,
  receipts: 0,
  receiptsVerified: 0,
  checkpoint: null,
};

const names = (facts: TrustFacts) => trustScore(facts).components.map(({ name }) => name);

test('trust: a new service is scored on the facts with data, which share the other weights', () => {
  assert.deepEqual(trustScore(fresh), {
    score: 100,
    components: [
      { name: 'payment_enforced', value: true, weight: 15 / 40, score: 100 },
      { name: 'durable_storage', value: true, weight: 25 / 40, score: 100 },
    ],
  });
  assert.equal(trustScore({ ...fresh, paymentEnforced: false }).score, 63);
});

test('trust: every component is its measured share', () => {
  const facts: TrustFacts = {
    ...fresh,
    recentSucceeded: 3,
    recentFailed: 1,
    receipts: 10,
    receiptsVerified: 9,
    checkpoint: { ageMs: 60_000, problem: null },
  };
  assert.deepEqual(trustScore(facts), {
    // 15 + 25 + 25 × 0.75 + 25 × 0.9 + 10 = 91.25
    score: 91,
    components: [
      { name: 'payment_enforced', value: true, weight: 0.15, score: 100 },
      { name: 'durable_storage', value: true, weight: 0.25, score: 100 },
      { name: 'recent_success_rate', value: 0.75, weight: 0.25, score: 75 },
      { name: 'receipts_verified', value: 0.9, weight: 0.25, score: 90 },
      { name: 'log_checkpoint', value: true, weight: 0.1, score: 100 },
    ],
  });
});

test('trust: a stale or inconsistent checkpoint scores nothing', () => {
  const of = (ageMs: number, problem: CheckpointProblem | null) =>
    trustScore({ ...fresh, checkpoint: { ageMs, problem } }).components.at(-1)?.score;
  assert.equal(of(60_000, null), 100);
  assert.equal(of(60_001, null), 0);
  assert.equal(of(0, 'history_cut'), 0);
});

test('trust: a fact without data is left out', () => {
  assert.deepEqual(names({ ...fresh, recentFailed: 1 }), [
    'payment_enforced',
    'durable_storage',
    'recent_success_rate',
  ]);
  assert.deepEqual(names({ ...fresh, receipts: 1 }), [
    'payment_enforced',
    'durable_storage',
    'receipts_verified',
  ]);
});

test('trust: the score is 0 if every fact is bad, and 100 if every fact is good', () => {
  const good: TrustFacts = {
    ...fresh,
    recentSucceeded: 5,
    receipts: 5,
    receiptsVerified: 5,
    checkpoint: { ageMs: 0, problem: null },
  };
  const bad: TrustFacts = {
    ...good,
    paymentEnforced: false,
    storage: { driver: 'sqlite+pglite', durable: false },
    recentSucceeded: 0,
    recentFailed: 5,
    receiptsVerified: 0,
    checkpoint: { ageMs: 60_002, problem: null },
  };
  assert.equal(trustScore(good).score, 100);
  assert.equal(trustScore(bad).score, 0);
});

test('trust: for any facts the score is whole and from 0 to 100, and the weights add up to 1', () => {
  const facts = fc
    .record({
      paymentEnforced: fc.boolean(),
      durable: fc.boolean(),
      recentSucceeded: fc.nat(),
      recentFailed: fc.nat(),
      receiptsVerified: fc.nat(),
      unverified: fc.nat(),
      checkpoint: fc.option(
        fc.record({ ageMs: fc.nat(200_000), problem: fc.constantFrom(null, 'history_cut' as const) }),
      ),
    })
    .map(
      ({ durable, unverified, ...rest }): TrustFacts => ({
        ...fresh,
        ...rest,
        storage: { driver: 'sqlite+pglite', durable },
        receipts: rest.receiptsVerified + unverified,
      }),
    );
  fc.assert(
    fc.property(facts, (given) => {
      const { score, components } = trustScore(given);
      assert.ok(Number.isInteger(score) && score >= 0 && score <= 100);
      const sum = components.reduce((total, { weight }) => total + weight, 0);
      assert.ok(Math.abs(sum - 1) < 1e-9);
      assert.ok(components.every((one) => one.score >= 0 && one.score <= 100));
    }),
  );
});

test('trust signals: sentences from the same facts', () => {
  assert.deepEqual(trustSignals(fresh, OFFER), [
    'Payment is enforced: $0.01 a call by x402 (exact, eip155:84532).',
    'Every event is durable before it is acknowledged (sqlite+pglite).',
    'No job has finished within the last 24 hours.',
    'No receipt has been signed yet.',
    'There is no transparency log yet.',
  ]);
  const worse: TrustFacts = {
    ...fresh,
    paymentEnforced: false,
    recentSucceeded: 1999,
    recentFailed: 1,
    receipts: 12,
    receiptsVerified: 10,
    checkpoint: { ageMs: 60_009, problem: null },
  };
  assert.deepEqual(trustSignals(worse, OFFER), [
    'Payment is not enforced: the service runs in demo mode.',
    'Every event is durable before it is acknowledged (sqlite+pglite).',
    // Cut, not rounded: one failure must not read as 100 %.
    '1999 of 2000 jobs finished within the last 24 hours succeeded (99.9 %).',
    '2 of 12 receipts signed so far do not verify.',
    'The newest checkpoint of the transparency log is overdue. It is unwitnessed: no witness cosigns it.',
  ]);
  assert.equal(
    trustSignals({ ...fresh, receipts: 3, receiptsVerified: 3 }, OFFER)[3],
    'All receipts signed so far verify (3).',
  );
  for (const [problem, standing] of [
    [null, 'is fresh and consistent with the log'],
    ['checkpoint_forgotten', 'does not fit the log'],
  ] as const)
    assert.equal(
      trustSignals({ ...worse, checkpoint: { ageMs: 0, problem } }, OFFER)[4],
      `The newest checkpoint of the transparency log ${standing}. It is unwitnessed: no witness cosigns it.`,
    );
  const witnesses = { configured: 3, quorum: 'two', lastCosignedAt: null, lagSeconds: 7, witnesses: [] };
  const signalOf = (changes: { readonly lastCosignedAt?: string }) =>
    trustSignals(
      { ...worse, checkpoint: { ageMs: 0, problem: null }, witnesses: { ...witnesses, ...changes } },
      OFFER,
    )[4]?.replace(/^.*log\. /, '');
  assert.equal(signalOf({}), 'No quorum of its 3 witnesses has cosigned one yet.');
  assert.equal(
    signalOf({ lastCosignedAt: '2026-01-02T03:04:05.000Z' }),
    'A quorum (two) of its 3 witnesses has last cosigned one at 2026-01-02T03:04:05.000Z; the newest has waited 7 s for one.',
  );
});
