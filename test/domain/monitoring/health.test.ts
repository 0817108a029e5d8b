// Given what is known of each part, when the service is asked for its health, then it states what works and what does not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REMEDY } from '#src/domain/damage.ts';
import {
  type ChainProblem,
  type FacilitatorProblem,
  type HealthFacts,
  healthReport,
  type LogProblem,
} from '#src/domain/monitoring/health.ts';
import type { CheckpointProblem } from '#src/domain/transparency/checkpoint.ts';
import { ALL_WELL } from '#test/support/given/all-well.ts';

const WELL: HealthFacts = { ...ALL_WELL, facilitator: { ok: true } };

/** What a report says is wrong: `part: reason`; and whether calls can be executed. */
function wrong(changes: Partial<HealthFacts>): readonly [wrong: readonly string[], executes: boolean] {
  const { ok, executes, checks } = healthReport({ ...WELL, ...changes });
  const found = Object.entries(checks).flatMap(([part, state]) => {
    if (state === null || state.ok) return [];
    assert.match(state.message, /^[A-Z0-9].*\.$/, 'a sentence');
    return [`${part}: ${state.reason}`];
  });
  assert.equal(ok, found.length === 0);
  return [found, executes];
}

test('all parts work, also without payments and without a transparency log: ok', () => {
  assert.deepEqual(wrong({}), [[], true]);
  assert.deepEqual(wrong({ facilitator: null, checkpoint: null }), [[], true]);
});

test('the event log takes no events, whatever the cause: no call is executed', () => {
  for (const problem of ['unavailable', 'not_writable', 'replaced', 'damaged'] satisfies LogProblem[])
    assert.deepEqual(wrong({ eventLog: { ok: false, problem } }), [[`eventLog: ${problem}`], false]);
});

const UNNAMED = { stream: null, revision: null };

test('damaged events: named by stream and revision; other calls are executed', () => {
  const [from, to] = ['00000000000000000007', '00000000000000000009'];
  const damaged = { count: 2, first: { from, to: from, stream: 'job-1', revision: '3' } };
  assert.deepEqual(wrong({ eventLog: { ok: true, damaged } }), [['eventLog: damaged_events'], true]);
  const { checks } = healthReport({ ...WELL, eventLog: { ok: true, damaged } });
  assert.match(JSON.stringify(checks.eventLog), /2 events cannot .* revision 3 of stream job-1, position 7/);
  assert.ok(JSON.stringify(checks.eventLog).includes(REMEDY.whole));
  const { checks: unnamed } = healthReport({
    ...WELL,
    eventLog: { ok: false, problem: 'damaged', damaged: { count: 3, first: { from, to, ...UNNAMED } } },
  });
  assert.match(
    JSON.stringify(unnamed.eventLog),
    /no call is executed\. .* 3 events cannot .* positions 7 to 9/,
  );
});

test('no signing key: no call is executed, and the instant from which one is valid is named', () => {
  for (const validFrom of ['2030-01-01T00:00:00Z', null]) {
    const signingKey = { ok: false, validFrom } as const;
    assert.deepEqual(wrong({ signingKey }), [['signingKey: no_signing_key'], false]);
    const { checks } = healthReport({ ...WELL, signingKey });
    assert.equal(JSON.stringify(checks.signingKey).includes('from 2030-01-01T00:00:00Z'), validFrom !== null);
  }
});

test('a refused checkpoint: only a forgotten one stops calls, because the log lacks acknowledged events', () => {
  const problems: readonly CheckpointProblem[] = [
    'checkpoint_unreadable',
    'checkpoint_forgotten',
    'checkpoint_not_signed',
    'history_cut',
    'history_rewritten',
  ];
  for (const problem of problems)
    assert.deepEqual(wrong({ checkpoint: { problem, waitingMs: 0 } }), [
      [`transparencyLog: ${problem}`],
      problem !== 'checkpoint_forgotten',
    ]);
});

test('leaves that wait over a minute for a checkpoint, and rows that lag by over 30 s, are not ok; calls are executed', () => {
  assert.deepEqual(wrong({ checkpoint: { problem: null, waitingMs: 60_000 } }), [[], true]);
  assert.deepEqual(wrong({ checkpoint: { problem: null, waitingMs: 60_001 } }), [
    ['transparencyLog: checkpoint_overdue'],
    true,
  ]);
  assert.deepEqual(wrong({ projection: { lagMs: 30_000, barrier: null } }), [[], true]);
  assert.deepEqual(wrong({ projection: { lagMs: 30_001, barrier: null } }), [['projections: lagging'], true]);
});

test('rows that stop before a damaged event: not ok, and the event is named', () => {
  const projection = {
    lagMs: 0,
    barrier: { problem: 'stopped', place: 'the damaged event at revision 3 of stream job-1' } as const,
  };
  assert.deepEqual(wrong({ projection }), [['projections: stopped'], true]);
  assert.match(
    JSON.stringify(healthReport({ ...WELL, projection }).checks.projections),
    /revision 3 of stream job-1/,
  );
});

test('rows that stop before an event of a newer release: not ok, the event is named, and no damage is stated', () => {
  const place = 'JobStarted version 3 at position 7';
  const projection = { lagMs: 0, barrier: { problem: 'newer_release', place } as const };
  assert.deepEqual(wrong({ projection }), [['projections: newer_release'], true]);
  const text = JSON.stringify(healthReport({ ...WELL, projection }).checks.projections);
  assert.match(text, /JobStarted version 3 at position 7, which a newer release has written/);
  assert.doesNotMatch(text, /damage|back/);
});

test('read models, facilitator or node unavailable: not ok, and a balancer still sends calls', () => {
  for (const problem of ['unavailable', 'rebuilding'] as const)
    assert.deepEqual(wrong({ readModels: { ok: false, problem } }), [[`readModels: ${problem}`], true]);
  const problems: readonly FacilitatorProblem[] = [
    'no_answer',
    'login_refused',
    'failing',
    'unsupported',
    'internal_error',
  ];
  for (const problem of problems)
    assert.deepEqual(wrong({ facilitator: { ok: false, problem } }), [[`facilitator: ${problem}`], true]);
  const nodes: readonly ChainProblem[] = ['no_answer', 'other_chain', 'no_safe_block', 'unchecked'];
  for (const problem of nodes)
    assert.deepEqual(wrong({ chain: { ok: false, problem } }), [[`chain: ${problem}`], true]);
});

test('the balance of the payee does not agree with the transfers: not ok, with the sum and the blocks', () => {
  const chain = {
    ok: false,
    problem: 'books_differ_from_chain',
    units: 3000n,
    fromBlock: 5,
    toBlock: 9,
  } as const;
  assert.deepEqual(wrong({ chain }), [['chain: books_differ_from_chain'], true]);
  assert.match(
    JSON.stringify(healthReport({ ...WELL, chain }).checks.chain),
    /by 3000 units in the blocks 5 to 9/,
  );
});

test('no block was compared lately: not ok, since when; calls are executed', () => {
  const since = '2030-01-01T00:00:00.000Z';
  const chain = { ok: false, problem: 'not_compared', since } as const;
  assert.deepEqual(wrong({ chain }), [['chain: not_compared'], true]);
  const { checks } = healthReport({ ...WELL, chain });
  assert.match(JSON.stringify(checks.chain), new RegExp(`since ${since}: .*calls are executed`));
});
