// The decision-first call: what a decision approves, what it does not, and that a no costs and leaves nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decisionHash } from '#src/domain/decision/approval.ts';
import { parseJws, type ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { Fault } from '#src/domain/refusal.ts';
import { executeGuidedWebhook } from '#src/usecases/execution/execute-guided-webhook.ts';
import { JOB, load } from '#src/usecases/process/stream.ts';
import {
  decided,
  guided,
  guidedAnswer,
  guidedInput,
  plainAction,
} from '#test/support/given/given-decision.ts';
import { decisionRecorded } from '#test/support/given/given-events.ts';
import { letPass } from '#test/support/world/fakes.ts';
import { shared, targetRules, type World, world } from '#test/support/world/fakes-world.ts';

const DAY = 24 * 3_600_000;
type Asked = NonNullable<Parameters<typeof decided>[1]>;

const decisionOf = async (it: World, asked: Asked = {}) => (await decided(it, asked)).decision.decisionId;

/** Refused as `code`: only the log was asked, and nothing was written, settled or sent. */
async function assertRefused(
  it: World,
  code: string,
  decisionId: string,
  changes: Parameters<typeof guided>[2] = {},
) {
  const before = it.log.events.length;
  it.steps.length = 0;
  assert.equal(await guided(it, decisionId, changes), code);
  assert.equal(it.log.events.length, before, 'no claim, no reservation');
  assert.deepEqual(
    it.steps.filter((step) => step !== 'payment'),
    [],
  );
  assert.deepEqual([it.outbound.sent, it.payments.ledger.size], [[], 0]);
}

test('an approved action is executed once; answer, job and receipt name the decision by its id and its hash', async () => {
  const it = world();
  const { decision } = await decided(it);
  const { decisionId } = decision;
  const { execution, decision: returned } = await guidedAnswer(it, decisionId);
  assert.deepEqual(returned, { decisionId, recommendation: 'pay_and_execute', confidence: 'high' });
  assert.equal(execution.job.status, 'succeeded');
  const { state } = await load(it, JOB, execution.job.id);
  assert.ok(state.status === 'completed');
  const hash = decisionHash(JSON.parse(JSON.stringify(decision)));
  const { route, decisionId: id, decisionHash: recorded } = state.started;
  assert.deepEqual([route, id, recorded], ['execute/guided-webhook', decisionId, hash]);
  const payload = parseJws(execution.receipt.jws)?.payload as ReceiptPayload;
  assert.deepEqual([payload.decisionId, payload.decisionHash], [decisionId, hash]);
  assert.deepEqual([it.outbound.sent.length, it.payments.ledger.size], [1, 1]);
});

test('a decision of one process approves on another: it is read from the log', async () => {
  const it = world();
  const decisionId = await decisionOf(it);
  assert.equal(await guided(world(it.common), decisionId), 'ran');
});

// ── not approved ────────────────────────────────────────────────────────────────────────────────────────

test('decision_not_found: an id that no caller was given, or of another relay', async () => {
  const it = world();
  const elsewhere = await decisionOf(world());
  for (const decisionId of [elsewhere, decisionRecorded().data.decisionId]) {
    await assertRefused(it, 'decision_not_found', decisionId);
    await assertRefused(it, 'decision_not_found', decisionId, { presented: null });
  }
});

test('decision_not_found: what is no id names no stream, and is not looked for', async () => {
  const common = shared();
  const read: string[] = [];
  const it = world(common, {
    log: {
      ...common.log,
      readStream(stream, options) {
        read.push(stream);
        return common.log.readStream(stream, options);
      },
    },
  });
  const { decisionId } = decisionRecorded().data;
  for (const odd of [
    '',
    'dec_',
    `${decisionId}\n`,
    ` ${decisionId}`,
    decisionId.toUpperCase(),
    `${decisionId}0`,
    'dec_../../keys-relay',
    'keys-relay',
    'job_0000000000000000000000000a',
    '$all',
    'd'.repeat(100_000),
    '\u0000',
  ]) {
    await assertRefused(it, 'decision_not_found', odd);
  }
  assert.deepEqual(
    read.filter((stream) => !/^(claim|payment)-[0-9a-f]{64}$/.test(stream)),
    [],
  );
});

test('decision_not_approved: a decision not to pay', async () => {
  const it = world();
  const decisionId = await decisionOf(it, { buyerPolicy: { maxPriceUsd: '0.002' } });
  await assertRefused(it, 'decision_not_approved', decisionId);
});

test('decision_expired: from 24 hours on, not a millisecond earlier', async () => {
  const it = world();
  const decisionId = await decisionOf(it);
  it.clock.skew(DAY);
  await assertRefused(it, 'decision_expired', decisionId);
  it.clock.skew(-1);
  assert.equal(await guided(it, decisionId), 'ran');
});

test('decision_action_mismatch: another action, also where only a stripped header is added', async () => {
  const it = world();
  const decisionId = await decisionOf(it);
  for (const action of [
    plainAction({ body: 'other' }),
    plainAction({ headers: { ...plainAction().headers, Host: 'a' } }),
  ])
    await assertRefused(it, 'decision_action_mismatch', decisionId, { action });
  assert.equal(await guided(it, decisionId), 'ran');
});

test('invalid_request: a malformed action, before the decision is read', async () => {
  const it = world();
  it.log.setAway(true);
  for (const action of [plainAction({ url: 'https://' }), plainAction({ headers: { 'a b': '1' } })])
    assert.equal(await guided(it, decisionRecorded().data.decisionId, { action }), 'invalid_request');
});

test('an approval is not a verdict: the target is judged again, and refused where it has become unsafe', async () => {
  const it = world();
  const decisionId = await decisionOf(it);
  const later = world(it.common, {
    rules: { ...targetRules, mode: 'blocklist-quota', blockHosts: ['target.example'] },
  });
  assert.equal(await guided(later, decisionId), 'target_blocked');
  assert.equal(it.payments.ledger.size, 0);
});

// ── the log is unavailable ─────────────────────────────────────────────────────────────────────────────────────

for (const [why, spoil] of [
  ['away', (it: World) => it.log.setAway(true)],
  ['silent', () => {}],
] as const) {
  test(`event_log_unavailable within seconds where the log is ${why}: a decision is not guessed`, async () => {
    const common = shared();
    const silent = { ...common.log, readStream: () => new Promise<never>(() => {}) };
    const it = world(common, why === 'silent' ? { log: silent } : {});
    spoil(it);
    for (const [changes, payment] of [
      [{}, true],
      [{ presented: null }, false],
    ] as const) {
      const began = it.clock.monotonic();
      const { decisionId } = decisionRecorded().data;
      const fault = await letPass(
        it.clock,
        executeGuidedWebhook(it.deps, guidedInput(decisionId, changes)),
      ).catch((error: unknown) => error);
      assert.ok(fault instanceof Fault);
      assert.deepEqual([fault.code, fault.retryAfterSeconds], ['event_log_unavailable', 5]);
      assert.match(fault.message, /nothing was sent/);
      assert.equal(/same payment header/.test(fault.message), payment);
      assert.ok(it.clock.monotonic() - began <= 2000);
    }
    assert.equal(it.clock.advanceToNext(), false, 'no timer is left');
  });
}

test('a decision that cannot be read is a fault of ours, and approves nothing', async () => {
  const it = world();
  const { decisionId } = decisionRecorded().data;
  const stream = `decision-${decisionId}`;
  const data = { ...decisionRecorded().data, recommendation: 'maybe' };
  await it.log.append(stream, 'no_stream', [
    { id: crypto.randomUUID(), type: 'DecisionRecorded', data, metadata: {} },
  ]);
  await assert.rejects(guided(it, decisionId), /cannot be read/);
  assert.deepEqual([it.outbound.sent, it.log.events.length], [[], 1]);
});
