import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ATTENTION_REASONS,
  attentionReasons,
  type ExecutionFacts,
  executionStatus,
  failureRate,
} from '#src/domain/monitoring/alert-rules.ts';
import type { CheckpointProblem } from '#src/domain/transparency/checkpoint.ts';

const calm: ExecutionFacts = {
  recentSucceeded: 0,
  recentFailed: 0,
  overdue: 0,
  unverifiedReceipts: 0,
  lagMs: 0,
  checkpoint: null,
};

test('attention: ok without a reason, also before the first job', () => {
  assert.deepEqual(attentionReasons(calm), []);
  assert.equal(executionStatus(calm), 'ok');
});

test('attention: more than 25 % of at least 4 finished jobs failed', () => {
  const of = (recentSucceeded: number, recentFailed: number) =>
    attentionReasons({ ...calm, recentSucceeded, recentFailed });
  assert.deepEqual(of(2, 2), ['failure_rate']);
  assert.deepEqual(of(3, 1), [], 'exactly 25 % is not more');
  assert.deepEqual(of(0, 3), [], 'three finished are too few');
  assert.deepEqual(of(0, 4), ['failure_rate']);
  assert.deepEqual(of(74, 26), ['failure_rate']);
});

test('attention: a job runs past its lease', () => {
  assert.deepEqual(attentionReasons({ ...calm, overdue: 1 }), ['overdue_job']);
});

test('attention: a stored receipt does not verify', () => {
  assert.deepEqual(attentionReasons({ ...calm, unverifiedReceipts: 1 }), ['unverified_receipt']);
});

test('attention: the projections lag the log by over 30 s', () => {
  assert.deepEqual(attentionReasons({ ...calm, lagMs: 30_000 }), []);
  assert.deepEqual(attentionReasons({ ...calm, lagMs: 30_001 }), ['projection_lag']);
});

test('attention: no checkpoint is signed, or leaves wait for over a minute for one', () => {
  const of = (ageMs: number, problem: CheckpointProblem | null) =>
    attentionReasons({ ...calm, checkpoint: { ageMs, problem } });
  assert.deepEqual(of(60_000, null), []);
  assert.deepEqual(of(60_001, null), ['checkpoint_overdue']);
  assert.deepEqual(of(0, 'history_cut'), ['checkpoint_refused']);
  assert.deepEqual(of(90_000, 'checkpoint_forgotten'), ['checkpoint_refused']);
});

test('attention: every reason is reported', () => {
  const all = { recentSucceeded: 1, recentFailed: 9, overdue: 2, unverifiedReceipts: 3, lagMs: 99_999 };
  const refused = { ageMs: 0, problem: 'checkpoint_forgotten' } as const;
  const overdue = { ageMs: 60_001, problem: null };
  const seen = [refused, overdue].map((checkpoint) => attentionReasons({ ...all, checkpoint }));
  assert.deepEqual(new Set(seen.flat()), new Set(ATTENTION_REASONS));
  assert.equal(executionStatus({ ...all, checkpoint: null }), 'attention');
});

test('failure rate: of the finished ones, 0 where none finished', () => {
  assert.equal(failureRate({ recentSucceeded: 0, recentFailed: 0 }), 0);
  assert.equal(failureRate({ recentSucceeded: 3, recentFailed: 1 }), 0.25);
});
