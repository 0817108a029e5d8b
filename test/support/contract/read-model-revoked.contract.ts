// Part of the suite over every read store: what is answered about receipts whose signing key was reported compromised.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { purgeOnce } from '#projections/purge.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import { commitment, keyRetired } from '#test/support/given/given-events.ts';
import {
  appendAll,
  decisionAppend,
  decisionIdOf,
  type JobPlan,
  jobAppends,
  jobIdOf,
  PLAN,
  type PlannedAppend,
  RECEIPT_KEY_ID,
} from '#test/support/given/job-histories.ts';
import {
  allRows,
  commonLog,
  emptyRows,
  folded,
  modelsOver,
  project,
  type ReadStoreHarness,
  rowsFor,
} from '#test/support/log/read-store.ts';

const SIGNED_AFTER_MS = PLAN.attemptMs;

/** One job whose receipt is signed at this time of the day. */
function signedAt(time: string, seed: number, plan: Partial<JobPlan> = {}): readonly PlannedAppend[] {
  const startedAtMs = Date.parse(`2026-01-02T${time}Z`) - SIGNED_AFTER_MS;
  return jobAppends({ ...PLAN, seed, startedAtMs, ...plan });
}

const byOtherKey = (appends: readonly PlannedAppend[]): readonly PlannedAppend[] =>
  appends.map(({ stream, events }) => ({
    stream,
    events: events.map((event): DomainEvent => {
      if (event.type !== 'ReceiptSigned') return event;
      return { ...event, data: { ...event.data, keyId: commitment('o') } };
    }),
  }));

const retired = (since: string | null, keyId = RECEIPT_KEY_ID): PlannedAppend => ({
  stream: 'keys-relay',
  events: [
    keyRetired({
      keyId,
      reason: since === null ? 'retired' : 'compromised',
      compromisedAt: since && `2026-01-02T${since}Z`,
    }),
  ],
});

const JOBS: readonly PlannedAppend[] = [
  decisionAppend(3),
  ...signedAt('03:04:05.928', 0),
  ...signedAt('03:04:20.100', 1),
  ...signedAt('03:04:19.999', 2),
  ...signedAt('03:05:00.000', 3, { answers: [500], decision: 3 }),
  ...signedAt('03:05:10.000', 4, { receiptGood: false }),
  ...byOtherKey(signedAt('03:06:00.000', 5)),
];

export function revokedContract(harness: ReadStoreHarness): void {
  async function given(...appends: readonly PlannedAppend[]) {
    const store = await harness.fresh();
    const log = await commonLog();
    await emptyRows(await rowsFor(log, store));
    const also = async (...more: readonly PlannedAppend[]) => {
      await appendAll(log, more);
      return await project(log, store);
    };
    const db = await also(...appends);
    const models = modelsOver(db);
    /** The jobs whose receipt is shown as verified. */
    const verified = async () => {
      const proofs = await models.proof.recent(10);
      const shown = proofs.flatMap(({ jobId, receiptVerified }) => (receiptVerified ? [jobId] : []));
      for (const jobId of [0, 1, 2, 3, 4, 5].map(jobIdOf))
        assert.equal((await models.proof.find(jobId))?.receiptVerified, shown.includes(jobId));
      return shown.map((jobId) => [0, 1, 2, 3, 4, 5].findIndex((seed) => jobIdOf(seed) === jobId)).sort();
    };
    return { store, log, db, models, also, verified };
  }

  test('receipts signed since the second of a compromise are not verified in any list or count; others are', async () => {
    const { models, also, verified } = await given(
      ...JOBS,
      retired(null),
      retired('00:00:00.000', commitment('n')),
    );
    const outcome = async () => {
      const [listed] = await models.decision.recent(1);
      const found = await models.decision.find(decisionIdOf(3));
      assert.deepEqual(found?.outcome, listed?.outcome);
      const [failure] = await models.proof.recentFailures('2026', 1);
      assert.equal(failure?.receiptVerified, found?.outcome.receiptVerified);
      return found?.outcome.receiptVerified;
    };
    assert.deepEqual(await verified(), [0, 1, 2, 3, 5], 'a retirement revokes nothing');
    assert.equal(await outcome(), true);
    const latestVerifiedAt = '2026-01-02T03:06:00.000Z';
    const all = { receipts: 6, verified: 5, recentVerified: 5, latestVerifiedAt };
    assert.deepEqual(await models.trust.receipts('2026'), all);
    assert.equal(await models.store.countUnverified(), 1);

    await also(retired('03:04:20.500'));
    assert.deepEqual(await verified(), [0, 2, 5]);
    assert.equal(await outcome(), false);
    const rest = { ...all, verified: 3, recentVerified: 3 };
    assert.deepEqual(await models.trust.receipts('2026'), rest);
    assert.equal((await models.trust.receipts('2026-01-02T03:04')).recentVerified, 3);
    assert.equal((await models.trust.receipts('2026-01-02T03:05')).recentVerified, 1);
    assert.equal(await models.store.countUnverified(), 3);

    await also(retired('03:04:05.000'), retired('03:05:30.000'));
    assert.deepEqual(await verified(), [5], 'a second report dates a compromise earlier, never later');
    assert.equal((await models.trust.receipts('2026')).verified, 1);
    assert.equal(await models.store.countUnverified(), 5);

    await also(retired('00:00:00.000', commitment('o')));
    assert.deepEqual(await verified(), []);
    const none = { receipts: 6, verified: 0, recentVerified: 0, latestVerifiedAt: null };
    assert.deepEqual(await models.trust.receipts('2026'), none);
  });

  test('receipts that the purge took are not counted as unverified; for trust they stay revoked', async () => {
    const { db, models } = await given(...JOBS, retired('03:04:10.000'));
    const counts = async () => [
      await models.store.countUnverified(),
      (await models.trust.receipts('2026')).verified,
    ];
    assert.deepEqual(await counts(), [4, 2]);
    await purgeOnce(db, { jobs: null, receipts: '2026-01-02T03:04:30.000Z' });
    // Of the minute of the compromise nothing is in store: the whole minute counts as revoked.
    assert.deepEqual(await counts(), [2, 1]);
    await purgeOnce(db, { jobs: null, receipts: '2026-01-02T03:05:30.000Z' });
    assert.deepEqual(await counts(), [0, 1]);
  });

  test('a compromise makes the same rows live, in one batch, and from the first event', async () => {
    const { store, log, db, also, verified } = await given(...JOBS);
    await also(retired('03:04:20.500'), ...signedAt('03:07:00.000', 6));
    const shown = await verified();
    const expected = await folded(log);
    assert.deepEqual(expected.revoked_keys?.length, 1);
    assert.deepEqual(await allRows(db), expected);
    await emptyRows(await rowsFor(log, store));
    assert.deepEqual(await allRows(await project(log, store)), expected);
    assert.deepEqual(await verified(), shown);
  });
}
