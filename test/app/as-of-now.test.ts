// Lists and counts of receipts after a compromise of their key: nothing else changes, and nothing without a compromise.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asOfNow } from '#src/app/as-of-now.ts';
import type { UndoneCounts } from '#src/usecases/receipts/revoked-receipts.ts';
import { decisionRecord, proofRecord } from '#test/support/http-deps.ts';

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);
const SINCE = '2026-01-01T03:04';
const TRUST = { receipts: 9, verified: 8, recentVerified: 4, latestVerifiedAt: '2026-01-02T03:00:00.000Z' };

const ran = (receiptId: string | null, receiptVerified = true) => ({ receiptId, receiptVerified });
const RAN = [ran('a'), ran('b'), ran('c', false), ran(null, false)];
const PROOFS = RAN.map((changes) => proofRecord(changes));
const DECISIONS = RAN.map((changes) =>
  decisionRecord({ outcome: { ...decisionRecord().outcome, ...changes } }),
);

/** Receipt b is revoked if `counts` is not null. */
function setting(counts: UndoneCounts | null) {
  const asked: unknown[] = [];
  const models = {
    proof: { recent: async () => PROOFS, recentFailures: async () => PROOFS },
    decision: {
      recent: async () => DECISIONS,
      find: async (id: string) => DECISIONS.find(({ outcome }) => outcome.receiptId === id) ?? null,
    },
    trust: { receipts: async () => TRUST },
    receipt: { countUnverified: async () => 1 },
  };
  const undone = {
    async counts(since: string) {
      asked.push(since);
      return counts;
    },
    async among(ids: readonly string[]) {
      asked.push(ids);
      return new Set(counts === null ? [] : ['b']);
    },
  };
  return { ...asOfNow({ models, undone, clock: { now: () => NOW } }), asked };
}

const SOME: UndoneCounts = { receipts: 5, recent: 3, latestVerifiedAt: '2026-01-01T00:00:00.000Z' };

test('while no receipt is revoked, results are returned as stored', async () => {
  const { proof, decision, trust, receipt } = setting(null);
  assert.deepEqual(await proof.recent(10), PROOFS);
  assert.deepEqual(await proof.recentFailures(SINCE, 10), PROOFS);
  assert.deepEqual(await decision.recent(10), DECISIONS);
  assert.deepEqual(await decision.find('b'), DECISIONS[1]);
  assert.deepEqual(await trust.receipts(SINCE), TRUST);
  assert.equal(await receipt.countUnverified(), 1);
});

test('of what is listed the undone receipts are not verified; all is asked at once, of the good ones', async () => {
  const { proof, decision, asked } = setting(SOME);
  const verified = [true, false, false, false];
  const proofs = PROOFS.map((one, at) => ({ ...one, receiptVerified: verified[at] }));
  assert.deepEqual(await proof.recent(10), proofs);
  assert.deepEqual(await proof.recentFailures(SINCE, 10), proofs);
  const decisions = DECISIONS.map((one, at) => ({
    ...one,
    outcome: { ...one.outcome, receiptVerified: verified[at] },
  }));
  assert.deepEqual(await decision.recent(10), decisions);
  assert.deepEqual(asked.splice(0), [
    ['a', 'b'],
    ['a', 'b'],
    ['a', 'b'],
  ]);
  assert.deepEqual([await decision.find('b'), await decision.find('none')], [decisions[1], null]);
  assert.deepEqual(asked, [['b']]);
});

test('undone receipts count as unverified, for trust and for attention, and both ask of the same minute', async () => {
  const { trust, receipt, asked } = setting(SOME);
  assert.deepEqual(await trust.receipts(SINCE), {
    receipts: 9,
    verified: 3,
    recentVerified: 1,
    latestVerifiedAt: SOME.latestVerifiedAt,
  });
  assert.equal(await receipt.countUnverified(), 6);
  assert.deepEqual(asked, [SINCE, SINCE]);
});

test('more undone than counted, because one came between, is no negative count', async () => {
  const { trust } = setting({ receipts: 9, recent: 5, latestVerifiedAt: null });
  const { verified, recentVerified } = await trust.receipts(SINCE);
  assert.deepEqual([verified, recentVerified], [0, 0]);
});
