import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault } from '#src/domain/refusal.ts';
import { type MarketDeps, marketFacts } from '#src/usecases/decisions/decide-webhook.ts';

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);

function deps(changes: Partial<MarketDeps> = {}): MarketDeps & { readonly asked: unknown[] } {
  const asked: unknown[] = [];
  return {
    asked,
    rows: {
      async jobs(now) {
        asked.push(now);
        return { stats: { recentSucceeded: 6, recentFailed: 2 }, failureRate: 0.25 };
      },
      async receipts(now) {
        asked.push(now);
        return { receipts: 8, verified: 8 };
      },
    },
    checkpointStanding: () => null,
    clock: { now: () => NOW },
    mode: 'x402',
    storage: { driver: 'sqlite+pglite', durable: true },
    ...changes,
  };
}

test('market: the score and the failures of the trust window, of finished jobs only', async () => {
  const paid = deps();
  // (15 + 25 + 25 × 6/8 + 25) of 90.
  assert.deepEqual(await marketFacts(paid), {
    trustScore: 93,
    recentFailureRate: 0.25,
    recentFinishedJobs: 8,
  });
  assert.deepEqual(paid.asked, [NOW, NOW]);
  assert.equal((await marketFacts(deps({ mode: 'demo' }))).trustScore, 76, 'no one pays: no points for it');
  const overdue = deps({ checkpointStanding: () => ({ ageMs: 60_001, problem: null }) });
  // (15 + 25 + 25 × 6/8 + 25) of 100.
  assert.equal((await marketFacts(overdue)).trustScore, 84, 'a receipt waits for its checkpoint');
});

test('market: where the rows are away nothing is made up', async () => {
  const away = () => Promise.reject(new Fault('read_models_unavailable', 'away'));
  const gone = deps({ rows: { ...deps().rows, receipts: away } });
  await assert.rejects(marketFacts(gone), { code: 'read_models_unavailable' });
});
