import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DecisionFactsDeps, decisionFacts } from '#src/app/reads.ts';
import { Fault } from '#src/domain/refusal.ts';

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);

function deps(changes: Partial<DecisionFactsDeps> = {}): DecisionFactsDeps & { readonly asked: unknown[] } {
  const asked: unknown[] = [];
  const stats = {
    total: 90,
    succeeded: 60,
    failed: 20,
    running: 10,
    recentTotal: 18,
    recentSucceeded: 6,
    recentFailed: 2,
    recentRunning: 10,
    lastUpdatedAt: null,
  };
  return {
    asked,
    models: {
      monitoring: {
        async summary(...given) {
          asked.push(given);
          return { stats, failureRate: 0.25, overdue: 0 };
        },
      },
      trust: {
        async receipts(since) {
          asked.push(since);
          return { receipts: 8, verified: 8, recentVerified: 4, latestVerifiedAt: null };
        },
      },
    },
    checkpointStanding: () => null,
    clock: { now: () => NOW },
    mode: 'x402',
    storage: { driver: 'sqlite+pglite', durable: true },
    ...changes,
  };
}

test('market: the score and the failures of the last 24 hours, of finished jobs only', async () => {
  const paid = deps();
  // (15 + 25 + 25 × 6/8 + 25) of 90.
  assert.deepEqual(await decisionFacts(paid)(), {
    trustScore: 93,
    recentFailureRate: 0.25,
    recentFinishedJobs: 8,
  });
  assert.deepEqual(paid.asked, [[NOW, 86_400_000], '2026-01-01T03:04']);
  assert.equal(
    (await decisionFacts(deps({ mode: 'demo' }))()).trustScore,
    76,
    'no one pays: no points for it',
  );
  const overdue = deps({ checkpointStanding: () => ({ ageMs: 60_001, problem: null }) });
  // (15 + 25 + 25 × 6/8 + 25) of 100.
  assert.equal((await decisionFacts(overdue)()).trustScore, 84, 'a receipt waits for its checkpoint');
});

test('market: where the rows are away nothing is made up', async () => {
  const away = () => Promise.reject(new Fault('read_models_unavailable', 'away'));
  const { models } = deps();
  const gone = deps({ models: { ...models, trust: { receipts: away } } });
  await assert.rejects(decisionFacts(gone)(), { code: 'read_models_unavailable' });
});
