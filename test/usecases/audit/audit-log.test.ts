// An honest record is clean, whatever shape its histories have.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { TIMES } from '#src/domain/limits.ts';
import { Fault } from '#src/domain/refusal.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { jobRecovery } from '#src/usecases/execution/recover-jobs.ts';
import { otherPayment, presentedPayment } from '#test/support/chain/fakes-payments.ts';
import { audit, givenRecord, ORIGIN, type Record, treeOf } from '#test/support/given/audited-record.ts';
import { DEMO, execute } from '#test/support/given/given-call.ts';
import { decided, guided } from '#test/support/given/given-decision.ts';
import { hex } from '#test/support/given/given-events.ts';
import { stateByHand } from '#test/support/given/given-payment.ts';
import { testKey } from '#test/support/given/primitives.ts';
import { Crash, dies, diesInSend } from '#test/support/log/fakes-log.ts';
import { failing, letPass, succeeding } from '#test/support/world/fakes.ts';

const HOUR_MS = 3_600_000;

async function crashed(run: Promise<unknown>): Promise<void> {
  await assert.rejects(run, Crash);
}
const unconfirmed = (error: unknown) => error instanceof Fault && error.code === 'payment_unconfirmed';
const jobOf = (it: Record, type: string) =>
  String(it.log.events.findLast((event) => event.type === type)?.data.jobId);

async function jobs(it: Record): Promise<void> {
  const demo = it.process({ payments: { ...it.payments, mode: 'demo' } });
  await execute(demo, { ...DEMO, key: 'demo' });
  await execute(demo, { ...DEMO, key: null });
  await it.paid();
  await it.paid({ presented: otherPayment('a1') });
  await it.paid({ presented: presentedPayment({ x402Version: 1 }), key: null });
  it.outbound.script(failing({ phase: 'connect', sent: 'no', status: null, errorCategory: 'connect_error' }));
  await it.paid();
  it.outbound.script(failing(), failing({ retryAfterMs: 20 }), succeeding());
  await letPass(it.clock, it.paid({ request: { retry: { attempts: 3, backoffMs: 5 } } }));
  // again: answered from the record
  await execute(it.it, { presented: otherPayment('a1'), key: 'paid-2' });
}

async function decisions(it: Record): Promise<void> {
  const { decision } = await decided(it.it);
  await decided(it.it, { buyerPolicy: { maxPriceUsd: '0.001' } });
  assert.equal(await guided(it.it, decision.decisionId, { presented: otherPayment('b1') }), 'ran');
}

async function interrupted(it: Record): Promise<void> {
  it.log.onNext('ReceiptSigned', dies('before'));
  await crashed(it.paid());
  it.log.onNext('JobStarted', dies('after'));
  await crashed(it.paid());
  const candidates = async () =>
    it.log.events.filter(({ type }) => type === 'JobStarted').map(({ data }) => String(data.jobId));
  const recovery = jobRecovery({ ...it.process().deps, clock: it.clock, candidates });
  assert.equal((await recovery.sweep({ exclusive: true })).length, 2);
}

/** Each is a payment whose first settle call has no answer; the events after it differ. */
async function unknowns(it: Record): Promise<void> {
  const lost = { outcome: 'unknown', cause: 'timeout', transaction: null } as const;
  for (const [key, then] of [
    ['retried', () => execute(it.it, { presented: otherPayment('c1'), key: 'retried' })],
    [
      'operator',
      () =>
        stateByHand(it.deps, `payment-${otherPayment('c2').hash}`, {
          kind: 'settled',
          transaction: `0x${hex('c')}`,
        }),
    ],
    [
      'never',
      async () => {
        it.clock.advance(300_000);
        return stateByHand(it.deps, `payment-${otherPayment('c3').hash}`, { kind: 'not_settled' });
      },
    ],
  ] as const) {
    const presented = otherPayment({ retried: 'c1', operator: 'c2', never: 'c3' }[key]);
    it.payments.scriptSettle(lost);
    await assert.rejects(execute(it.it, { presented, key }), unconfirmed);
    await then();
  }
  await execute(it.it, { presented: otherPayment('c2'), key: 'operator' });
  // what was given up frees its key for another payment
  await execute(it.it, { presented: otherPayment('c4'), key: 'never' });
}

async function keysOfPayers(it: Record): Promise<void> {
  it.payments.scriptSettle({ outcome: 'rejected', reason: 'insufficient_funds' });
  await it.paid({ key: 'rejected' });
  await it.paid({ key: 'rejected' });
  // two at once for one key: one of them gives its payment up
  await Promise.all([it.paid({ key: 'both' }), it.paid({ key: 'both' }, it.process())]);
  await it.checkpoint();
  it.clock.advance(TIMES.idempotencyRetentionMs);
  await it.paid({ key: 'both' });
}

async function keys(it: Record): Promise<void> {
  const [second, third, checkpoints] = [testKey(), testKey(), testKey({ purpose: 'checkpoint' })];
  await it.announce(second);
  await it.retire(it.key, { effectiveAt: new Date(it.clock.now() + 600_000).toISOString() });
  await it.paid();
  it.signing.key = second;
  it.clock.advance(700_000);
  await it.paid();
  await it.checkpoint();
  it.clock.advance(5000);
  await it.announce(third);
  await it.announce(checkpoints);
  it.signing.key = third;
  await it.retire(second, { reason: 'compromised', compromisedAt: it.now() });
  await it.retire(it.checkpointKey);
  await it.paid();
  await it.checkpoint(undefined, checkpoints);
}

test('an honest record of every shape is clean', async () => {
  const it = await givenRecord();
  for (const part of [jobs, decisions, interrupted, unknowns, keysOfPayers, keys]) {
    await part(it);
    if (part !== keys) await it.checkpoint();
    it.clock.advance(1000);
  }
  const { events } = it.log;
  const { findings, summary } = await audit(events);
  assert.deepEqual(findings, []);
  const count = (type: string) => events.filter((event) => event.type === type).length;
  for (const type of [
    'PaymentReleased',
    'IdempotencyKeyReleased',
    'SettlementRetried',
    'SettlementUnknown',
    'PaymentRejected',
  ])
    assert.ok(count(type) > 0, type);
  assert.ok(events.some(({ data }) => data.closedBy === 'recovery'));
  assert.ok(events.some(({ data }) => data.reason === 'retention_over'));
  const { size } = await treeOf(events);
  assert.deepEqual(
    { ...summary, root: null },
    {
      events: events.length,
      streams: new Set(events.map(({ stream }) => stream)).size,
      damaged: 0,
      jobs: count('JobStarted'),
      receipts: count('JobCompleted'),
      comparisons: 0,
      refunds: 0,
      keys: count('SigningKeyActivated'),
      checkpoints: count('CheckpointSigned'),
      treeSize: size,
      root: null,
      origin: ORIGIN,
      head: events.at(-1)?.position,
      witnessed: null,
      findings: 0,
      newer: 0,
      notes: {
        openJobs: 0,
        unservedPayments: 0,
        unconfirmedPayments: 0,
        missingPayments: 0,
        correctedCharges: 0,
        begunRefunds: 0,
        uncoveredLeaves: 0,
        unfitCheckpoints: 0,
      },
    },
  );
  assert.equal(summary.root, nameOfRoot(events));
});

/** As the last checkpoint says, which covers all. */
const nameOfRoot = (events: readonly RecordedEvent[]) =>
  events.findLast(({ type }) => type === 'CheckpointSigned')?.data.root;

test('what is open at the end is noted, and no finding', async () => {
  const it = await givenRecord();
  diesInSend(it);
  await crashed(it.paid());
  it.log.onNext('JobStarted', dies('before'));
  await crashed(it.paid());
  it.payments.scriptSettle({ outcome: 'unknown', cause: 'timeout', transaction: null });
  await assert.rejects(it.paid(), unconfirmed);
  await it.paid();
  const { findings, summary } = await audit(it.log.events);
  assert.deepEqual(findings, []);
  assert.deepEqual(summary.notes, {
    openJobs: 1,
    unservedPayments: 1,
    unconfirmedPayments: 1,
    missingPayments: 0,
    correctedCharges: 0,
    begunRefunds: 0,
    uncoveredLeaves: 3,
    unfitCheckpoints: 0,
  });
});

test('a late settlement of a payment that was given up is honest, and serves its job', async () => {
  const it = await givenRecord({ log: false });
  const presented = otherPayment('d1');
  it.payments.scriptSettle({ outcome: 'unknown', cause: 'timeout', transaction: null });
  await assert.rejects(execute(it.it, { presented, key: null }), unconfirmed);
  it.clock.advance(HOUR_MS);
  const stream = `payment-${presented.hash}`;
  await stateByHand(it.deps, stream, { kind: 'not_settled' });
  const jobId = jobOf(it, 'PaymentReserved');
  const past = await it.log.readStream(stream);
  const data = { v: 1, jobId, transaction: null, evidence: 'chain', settledAt: it.now() };
  const event = { id: crypto.randomUUID(), type: 'PaymentSettled', data, metadata: {} };
  await it.log.append(stream, past.at(-1)?.revision ?? 'no_stream', [event]);
  assert.equal((await execute(it.it, { presented, key: null })).kind, 'ran');
  const { findings, summary } = await audit(it.log.events);
  assert.deepEqual([findings, summary.origin], [[], null]);
});

test('a record without any event is clean', async () => {
  const { findings, summary } = await audit([]);
  assert.deepEqual([findings, summary.events, summary.head, summary.treeSize], [[], 0, null, 0]);
});

test('events and receipts of version 1 audit clean, but for the made-up name of their payment', async () => {
  type Line = Omit<RecordedEvent, 'revision'> & { readonly revision: string };
  const linesOf = (name: string): readonly Line[] =>
    JSON.parse(readFileSync(new URL(`../../fixtures/${name}`, import.meta.url)).toString()).events;
  const job = linesOf('receipts-v1.json');
  const before = linesOf('events-v1.json').filter(({ position }) => position < String(job[0]?.position));
  const events = [...before, ...job]
    .map((line) => ({ ...line, revision: BigInt(line.revision) }))
    .sort((a, b) => (a.position < b.position ? -1 : 1));
  const { findings, summary } = await audit(events);
  const made = findings.map(({ kind, stream }) => `${kind} ${stream}`);
  const expected = [`stream_mismatch payment-${'9'.repeat(64)}`];
  assert.deepEqual([made, summary.receipts], [expected, 1]);
});
