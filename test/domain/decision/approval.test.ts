// What a decision approves: one recommended action, for a day.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeApproval } from '#src/domain/decision/approval.ts';
import { isRefused } from '#src/domain/refusal.ts';
import { decisionRecorded, hex, T0 } from '#test/support/given/given-events.ts';

const { data: decision } = decisionRecorded();
const END = T0 + 86_400_000;
const asked = { actionHash: decision.actionHash, nowMs: T0 };
function codeOf(...args: Parameters<typeof judgeApproval>) {
  const verdict = judgeApproval(...args);
  return isRefused(verdict) ? verdict.refused : verdict.kind;
}

test('a recommended action is approved until the decision expires, not a millisecond longer', () => {
  assert.equal(codeOf(decision, asked), 'allowed');
  assert.equal(codeOf(decision, { ...asked, nowMs: END - 1 }), 'allowed');
  assert.equal(codeOf(decision, { ...asked, nowMs: END }), 'decision_expired');
});

test('decision_expired: if its expiry cannot be read', () => {
  const { data } = decisionRecorded({ expiresAt: '2026-99-99T00:00:00.000Z' });
  assert.equal(codeOf(data, asked), 'decision_expired');
});

test('decision_not_found: where there is none', () => {
  assert.equal(codeOf(null, asked), 'decision_not_found');
});

for (const recommendation of ['manual_review', 'do_not_pay'] as const) {
  test(`decision_not_approved: ${recommendation}`, () => {
    assert.equal(codeOf(decisionRecorded({ recommendation }).data, asked), 'decision_not_approved');
  });
}

test('decision_action_mismatch: another action', () => {
  assert.equal(codeOf(decision, { ...asked, actionHash: hex('0') }), 'decision_action_mismatch');
});
