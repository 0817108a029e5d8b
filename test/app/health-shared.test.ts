// /health is free: however many ask for it, one question to each part is under way, and few are asked in a second.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AppParts } from '#src/app/app-parts.ts';
import { wireHealth } from '#src/app/health.ts';
import { manualClock, quiet } from '#test/support/world/fakes.ts';
import { appOf, fakeWorld } from '#test/support/world/http-deps.ts';

/** Of each part the questions under way, and all so far; the parts answer when they are let. */
function questions() {
  const seen = { log: 0, rows: 0, facilitator: 0, chain: 0 };
  let gate = Promise.withResolvers<void>();
  const ask = (part: keyof typeof seen) => async () => {
    seen[part] += 1;
    await gate.promise;
    return { ok: true } as const;
  };
  const answer = () => {
    gate.resolve();
    gate = Promise.withResolvers<void>();
  };
  return { seen, ask, answer };
}

function wired() {
  const clock = manualClock();
  const { seen, ask, answer } = questions();
  const parts = {
    config: { schedules: null },
    journal: { log: { health: ask('log') }, clock },
    keys: { health: () => ({ ok: true }) },
    stores: { readStore: { health: ask('rows') }, driver: 'x' },
    slots: { inFlight: () => 0 },
    projector: {
      readable: () => true,
      state: 'live',
      lag: () => ({ lagEvents: 0, lagMs: 0 }),
      stoppedAt: () => null,
    },
    recovery: { unclosable: () => 0 },
    checkpoints: { standing: () => null, latest: () => null },
    telemetry: {
      conditions: { note: () => undefined, list: () => [] },
      figures: { exposition: async () => ({ contentType: 'text/plain', text: '' }) },
    },
    scrub: { lastPass: () => null },
    witnesses: null,
  };
  const paying = { payments: { health: ask('facilitator') }, chain: { scan: { health: ask('chain') } } };
  const deps = wireHealth(
    parts as unknown as AppParts,
    { settings: fakeWorld().settings },
    paying as unknown as Parameters<typeof wireHealth>[2],
    null,
  );
  const { operators, ...rest } = fakeWorld({ settings: { metricsPublic: true } });
  const { health, wrong, witnesses } = deps;
  const world = { ...rest, health, wrong, witnesses, operators: { ...operators, ...deps.operators } };
  return { clock, seen, answer, deps, world };
}

const ONE = { log: 1, rows: 1, facilitator: 1, chain: 1 };

test('a thousand callers of /health and /metrics at once are one question to each part; /health/live asks none', async () => {
  const { seen, answer, world } = wired();
  const app = appOf(world);
  const get = (path: string) =>
    app.fetch(new Request(`http://localhost${path}`), { clientAddress: '203.0.113.9' });
  const many = Array.from({ length: 1000 }, (_, n) => get(n % 2 === 0 ? '/health' : '/metrics'));
  await quiet();
  assert.deepEqual(seen, ONE);
  assert.equal((await get('/health/live')).status, 200, 'it does not wait for what is asked');
  answer();
  assert.deepEqual(new Set((await Promise.all(many)).map(({ status }) => status)), new Set([200]));
  assert.deepEqual(seen, ONE);
});

test('an answer is kept for a quarter of a second', async () => {
  const { clock, seen, answer, deps } = wired();
  for (let n = 0; n < 200; n++) {
    const health = deps.health();
    await quiet();
    answer();
    await health;
    clock.advance(10);
  }
  assert.deepEqual(seen, { log: 8, rows: 8, facilitator: 8, chain: 8 });
});
