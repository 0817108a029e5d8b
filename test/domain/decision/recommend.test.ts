// The recommendation: each issue and warning for its own reason, at its exact border, and permanently the same.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type DecisionFacts, type Recommended, recommend } from '#src/domain/decision/recommend.ts';
import type { BuyerPolicy } from '#src/domain/decision/requests.ts';
import { goodFacts, goodPolicy } from '#test/support/given/given-decision.ts';
import { runs } from '#test/support/given/property-runs.ts';

type Changes = { facts?: Partial<DecisionFacts>; policy?: Partial<BuyerPolicy> };
const recommended = ({ facts, policy }: Changes = {}) => recommend(goodFacts(facts), goodPolicy(policy));
const codes = (said: Recommended['reasons']) => said.map(({ code }) => code);

test('nothing speaks against it: pay_and_execute, high, for every reason that spoke for it', () => {
  const answer = recommended({ facts: { recentFinishedJobs: 20 } });
  const { recommendation, confidence, blockingIssues, warnings } = answer;
  assert.deepEqual(
    [recommendation, confidence, blockingIssues, warnings],
    ['pay_and_execute', 'high', [], []],
  );
  assert.deepEqual(codes(answer.reasons), [
    'price_accepted',
    'network_allowed',
    'policy_passed',
    'idempotency_key_present',
    'trust_score_sufficient',
    'recent_failures_low',
    'receipt_signed',
  ]);
});

// ── do_not_pay ──────────────────────────────────────────────────────────────────────────────────────────

for (const [code, why, changes] of [
  ['price_over_max', 'a millionth over', { facts: { price: '$0.003001' }, policy: { maxPriceUsd: '0.003' } }],
  ['price_over_max', 'a maximum of nothing', { policy: { maxPriceUsd: '0' } }],
  ['price_over_max', 'a price in words', { facts: { price: 'three' } }],
  ['price_over_max', 'a maximum in words', { policy: { maxPriceUsd: 'three' } }],
  [
    'price_over_max',
    'where text would say the contrary',
    { facts: { price: '10' }, policy: { maxPriceUsd: '9' } },
  ],
  ['network_not_allowed', 'another', { policy: { allowedNetworks: ['eip155:1'] } }],
  ['network_not_allowed', 'an id that only begins so', { policy: { allowedNetworks: ['eip155:84532'] } }],
  ['network_not_allowed', 'none is allowed', { policy: { allowedNetworks: [] } }],
  ['unsafe_target', 'the policy’s word', { facts: { policyVerdict: 'unsafe_target' } }],
  ['target_quota_exceeded', 'the policy’s word', { facts: { policyVerdict: 'target_quota_exceeded' } }],
] as [string, string, Changes][]) {
  test(`do_not_pay, high: ${code}: ${why}`, () => {
    const { recommendation, confidence, blockingIssues, reasons } = recommended(changes);
    assert.deepEqual([recommendation, confidence], ['do_not_pay', 'high']);
    assert.deepEqual(codes(blockingIssues), [code]);
    assert.deepEqual(reasons[0], blockingIssues[0]);
  });
}

test('a price that equals the maximum is within it, however both are written', () => {
  for (const price of ['$0.003', '0.003', '0.0030', '$0.003000'])
    for (const maxPriceUsd of ['0.003', '0.0030', '0.003000'])
      assert.equal(
        recommended({ facts: { price }, policy: { maxPriceUsd } }).recommendation,
        'pay_and_execute',
        `${price} of ${maxPriceUsd}`,
      );
});

test('without a maximum any price will do, without networks any network', () => {
  const policy = { maxPriceUsd: null, allowedNetworks: null };
  const answer = recommended({ facts: { price: '999999', network: 'any' }, policy });
  assert.equal(answer.recommendation, 'pay_and_execute');
});

// ── manual_review ───────────────────────────────────────────────────────────────────────────────────────

for (const [code, changes] of [
  ['unsafe_target', { facts: { policyVerdict: 'unsafe_target' }, policy: { requirePolicyPass: false } }],
  ['target_unresolved_now', { facts: { policyVerdict: 'target_unresolved_now' } }],
  ['idempotency_key_missing', { facts: { idempotencyKeyPresent: false } }],
  ['headers_stripped', { facts: { strippedHeaders: 1 } }],
  ['body_is_json', { facts: { contentTypeDiffers: true } }],
  ['trust_score_under_minimum', { facts: { trustScore: 54.9 }, policy: { minTrustScore: 55 } }],
  ['trust_score_under_minimum', { facts: { trustScore: 0 }, policy: { minTrustScore: 0.1 } }],
  ['recent_failures_high', { facts: { recentFailureRate: 0.2501, recentFinishedJobs: 20 } }],
] as [string, Changes][]) {
  test(`manual_review, medium: ${code}: ${JSON.stringify(changes)}`, () => {
    const { recommendation, confidence, blockingIssues, warnings, reasons } = recommended(changes);
    assert.deepEqual([recommendation, confidence, blockingIssues], ['manual_review', 'medium', []]);
    assert.deepEqual(codes(warnings), [code]);
    assert.deepEqual(reasons[0], warnings[0]);
  });
}

for (const [why, changes] of [
  [
    'no key where none is required',
    { facts: { idempotencyKeyPresent: false }, policy: { requireIdempotencyKey: false } },
  ],
  ['a trust score that equals the minimum', { facts: { trustScore: 55 }, policy: { minTrustScore: 55 } }],
  ['a quarter of 20 failed', { facts: { recentFailureRate: 0.25, recentFinishedJobs: 20 } }],
  ['all of 19 failed', { facts: { recentFailureRate: 1, recentFinishedJobs: 19 } }],
] as [string, Changes][]) {
  test(`no warning: ${why}`, () => {
    assert.equal(recommended(changes).recommendation, 'pay_and_execute');
  });
}

test('no trust score is no warning, however much is asked, and a reason says so in every case', () => {
  const facts = { trustScore: null };
  const policy = { minTrustScore: 100 };
  const answers = [
    recommended({ facts, policy }),
    recommended({ facts: { ...facts, strippedHeaders: 2 }, policy }),
    recommended({ facts: { ...facts, policyVerdict: 'target_blocked' }, policy }),
  ];
  assert.deepEqual(
    answers.map(({ recommendation }) => recommendation),
    ['pay_and_execute', 'manual_review', 'do_not_pay'],
  );
  for (const { reasons, warnings } of answers) {
    assert.ok(codes(reasons).includes('trust_score_unknown'));
    assert.ok(!codes(warnings).some((code) => code.startsWith('trust')));
  }
});

test('without the read models trust is unknown: a warning says so, and nothing is said of recent failures', () => {
  const unmeasured = { measured: false, trustScore: null, recentFailureRate: 0, recentFinishedJobs: 0 };
  const { recommendation, warnings, reasons } = recommended({ facts: unmeasured });
  assert.deepEqual([recommendation, codes(warnings)], ['manual_review', ['trust_unavailable']]);
  assert.ok(!codes(reasons).some((code) => /^(?:recent|trust_score)_/.test(code)));
});

test('everything at once: blocking before warnings, each in the order of the checks, none lost', () => {
  const answer = recommended({
    facts: {
      price: '1',
      network: 'other',
      policyVerdict: 'target_unresolvable',
      idempotencyKeyPresent: false,
      strippedHeaders: 3,
      trustScore: 1,
      recentFailureRate: 1,
      recentFinishedJobs: 40,
    },
  });
  const blocking = ['price_over_max', 'network_not_allowed', 'target_unresolvable'];
  const warning = [
    'idempotency_key_missing',
    'headers_stripped',
    'trust_score_under_minimum',
    'recent_failures_high',
  ];
  assert.equal(answer.recommendation, 'do_not_pay');
  assert.deepEqual(codes(answer.blockingIssues), blocking);
  assert.deepEqual(codes(answer.warnings), warning);
  assert.deepEqual(codes(answer.reasons), [...blocking, ...warning]);
});

test('a receipt is promised where one is required', () => {
  const promised = (requireReceipt: boolean) =>
    codes(recommended({ policy: { requireReceipt } }).reasons).includes('receipt_signed');
  assert.deepEqual([promised(true), promised(false)], [true, false]);
});

// ── permanently the same ────────────────────────────────────────────────────────────────────────────────────────────

const usd = fc
  .tuple(fc.nat(20), fc.nat(999_999))
  .map(([whole, part]) => `${whole}.${String(part).padStart(6, '0')}`);
const anyFacts: fc.Arbitrary<DecisionFacts> = fc.record({
  price: fc.oneof(usd, fc.constantFrom('$0.003', '0.0030')),
  network: fc.constantFrom('eip155:8453', 'eip155:1'),
  payTo: fc.option(fc.constant('0x1111111111111111111111111111111111111111')),
  trustScore: fc.option(fc.double({ min: 0, max: 100, noNaN: true })),
  recentFailureRate: fc.double({ min: 0, max: 1, noNaN: true }),
  recentFinishedJobs: fc.nat(40),
  policyVerdict: fc.constantFrom('allowed', 'unsafe_target', 'target_unresolvable', 'target_unresolved_now'),
  method: fc.constantFrom('POST', 'PUT', 'PATCH', 'DELETE'),
  idempotencyKeyPresent: fc.boolean(),
  strippedHeaders: fc.nat(3),
  contentTypeDiffers: fc.boolean(),
  measured: fc.constantFrom(true, true, true, false),
});
const anyPolicy: fc.Arbitrary<BuyerPolicy> = fc.record({
  maxPriceUsd: fc.option(usd),
  requireReceipt: fc.boolean(),
  requirePolicyPass: fc.boolean(),
  requireIdempotencyKey: fc.boolean(),
  minTrustScore: fc.double({ min: 0, max: 100, noNaN: true }),
  allowedNetworks: fc.option(fc.uniqueArray(fc.constantFrom('eip155:8453', 'eip155:1', 'solana:x'))),
});

/** The same value as another machine may hold it: parsed from text, its names in another order. */
const reversed = <T extends object>(value: T): T =>
  JSON.parse(JSON.stringify(Object.fromEntries(Object.entries(value).reverse())));

test('the same facts and policy give the same words in the same order, however they are held', () => {
  fc.assert(
    fc.property(anyFacts, anyPolicy, (facts, policy) => {
      const first = JSON.stringify(recommend(facts, policy));
      assert.equal(JSON.stringify(recommend(facts, policy)), first);
      assert.equal(JSON.stringify(recommend(reversed(facts), reversed(policy))), first);
    }),
    { numRuns: runs(500) },
  );
});

test('in every case: the recommendation follows from the findings, and each of them is a reason, said in words', () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(anyFacts, anyPolicy, (facts, policy) => {
      const { recommendation, confidence, blockingIssues, warnings, reasons } = recommend(facts, policy);
      seen.add(recommendation);
      const expected =
        blockingIssues.length > 0 ? 'do_not_pay' : warnings.length > 0 ? 'manual_review' : 'pay_and_execute';
      assert.equal(recommendation, expected);
      assert.equal(confidence, expected === 'manual_review' ? 'medium' : 'high');
      assert.ok(reasons.length > 0);
      assert.deepEqual(reasons.slice(0, blockingIssues.length + warnings.length), [
        ...blockingIssues,
        ...warnings,
      ]);
      assert.equal(new Set(codes(reasons)).size, reasons.length);
      for (const { message } of reasons) assert.match(message, /^[A-Z].*\.$/);
    }),
    // Few random cases have neither an issue nor a warning: one is always tried.
    { numRuns: runs(500), examples: [[goodFacts(), goodPolicy()]] },
  );
  assert.deepEqual([...seen].sort(), ['do_not_pay', 'manual_review', 'pay_and_execute']);
});

test('a policy that asks for less never makes the recommendation worse', () => {
  const rank = { do_not_pay: 0, manual_review: 1, pay_and_execute: 2 };
  fc.assert(
    fc.property(anyFacts, anyPolicy, (facts, policy) => {
      const strictly = rank[recommend(facts, policy).recommendation];
      for (const less of [
        { maxPriceUsd: null },
        { allowedNetworks: null },
        { requirePolicyPass: false },
        { requireIdempotencyKey: false },
        { minTrustScore: 0 },
      ]) {
        assert.ok(rank[recommend(facts, { ...policy, ...less }).recommendation] >= strictly);
      }
    }),
    { numRuns: runs(300) },
  );
});
