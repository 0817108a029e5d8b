// Part of the suite over every read store: rows that a version of a model has told which is not this build's.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { purgeOnce } from '#projections/purge.ts';
import { READ_MODELS, type ReadModel, type Row } from '#projections/registry.ts';
import type { Db } from '#projections/rows.ts';
import { readModelVersions, writeModelVersions } from '#projections/versions.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { appendAll, jobAppends, PLAN, recorded } from './job-histories.ts';
import { memoryLog } from './memory-log.ts';
import { asStored, rowsAfter } from './read-model-rows.ts';
import { projectWith } from './read-model-versions.contract.ts';
import { allRows, type ReadStoreHarness, runnerOver, silent } from './read-store.ts';
import { waitFor } from './service.ts';

/** Only a hanging test meets it. */
const PATIENCE_MS = 20_000;
const options = (harness: ReadStoreHarness) => ({ ...harness.needs, timeout: 120_000 });

/** The models as a build has them in which these are of another version, whose job rows say so. */
function buildOf(versions: Readonly<Record<string, number>>): readonly ReadModel[] {
  return READ_MODELS.map((model) => {
    const version = versions[model.name] ?? model.version;
    if (model.name !== 'job' || version === model.version) return { ...model, version };
    const marked = (row: Row | null) => row && { ...row, mode: `of ${version}` };
    const project: ReadModel['project'] = (...given) =>
      model.project(...given).map((change) => ({ ...change, apply: (row) => marked(change.apply(row)) }));
    return { ...model, version, project };
  });
}

const modesOf = async (db: Db) =>
  ((await allRows(db)).jobs ?? []).map((row) => (row as { mode: string }).mode);

function warnings() {
  const lines: (readonly [message: string, fields: unknown])[] = [];
  const warn = (message: string, fields?: unknown) => void lines.push([message, fields]);
  return { lines, logger: { ...silent, warn } };
}

export function changedContract(harness: ReadStoreHarness): void {
  const { name } = harness;
  const shared = { ...options(harness), skip: harness.needs.skip };

  test(
    `${name}: rows are stamped with the versions that told them, in their first batch`,
    options(harness),
    async () => {
      const store = await harness.fresh();
      const log = memoryLog();
      await appendAll(log, jobAppends(PLAN));
      await projectWith(buildOf({ job: 3 }), log, store);
      const stamped = await readModelVersions(await store.open());
      assert.deepEqual(
        new Map(stamped),
        new Map(READ_MODELS.map((model) => [model.name, model.name === 'job' ? 3 : model.version])),
      );
      const { lines, logger } = warnings();
      const runner = runnerOver(log, store, { models: buildOf({ job: 3 }), logger });
      assert.ok(
        await runner.caughtUp((await appendAll(log, jobAppends({ ...PLAN, seed: 2 }))) ?? '', PATIENCE_MS),
      );
      await runner.stop();
      assert.deepEqual(lines, [], 'rows of this very version are nothing to tell');
    },
  );

  if (harness.name === 'pglite') {
    for (const [direction, stored, build] of [
      ['older', 1, 2],
      ['newer', 3, 2],
    ] as const) {
      test(
        `${name}: ${direction} rows in a disposable store are replayed by themselves`,
        options(harness),
        async () => {
          const store = await harness.fresh();
          const db = await store.open();
          const log = memoryLog();
          await appendAll(log, jobAppends(PLAN));
          await projectWith(buildOf({ job: stored }), log, store);
          const { lines, logger } = warnings();
          const runner = runnerOver(log, store, { models: buildOf({ job: build }), logger });
          const last = await appendAll(log, jobAppends({ ...PLAN, seed: 2 }));
          assert.ok(await runner.caughtUp(last ?? '', PATIENCE_MS));
          await runner.stop();
          assert.deepEqual(await modesOf(db), [`of ${build}`, `of ${build}`]);
          assert.equal((await readModelVersions(db)).get('job'), build);
          const models = [{ model: 'job', stored, build }];
          assert.deepEqual(lines, [
            ['the read models were told by another version: replaying them', { models }],
          ]);
        },
      );
    }
    return;
  }

  test(`${name}: older rows are told once, with the command, and gone on with`, shared, async () => {
    const store = await harness.fresh();
    const log = memoryLog();
    // As rows told by a version that wrote no number.
    await projectWith(READ_MODELS, log, store);
    await appendAll(log, jobAppends(PLAN));
    await projectWith(READ_MODELS, log, store);
    const { lines, logger } = warnings();
    // Another handle at every look: each time the process begins a session of its own again.
    const db = await store.open();
    let opened = 0;
    const open = async () => {
      opened++;
      return new Proxy(db, {});
    };
    const changed = buildOf({ job: 2, trust: 4 });
    const runner = runnerOver(log, { disposable: false, open }, { models: changed, logger });
    const last = await appendAll(log, jobAppends({ ...PLAN, seed: 2 }));
    assert.ok(await runner.caughtUp(last ?? '', PATIENCE_MS));
    await waitFor('some sessions', () => opened > 4);
    await runner.stop();
    const models = [
      { model: 'job', stored: 1, build: 2 },
      { model: 'trust', stored: 1, build: 4 },
    ];
    assert.deepEqual(lines, [
      ['rows of an older version of the read models: run `relay rebuild job trust`', { models }],
    ]);
    assert.equal(
      (await readModelVersions(await store.open())).get('job'),
      1,
      'until a rebuild says otherwise',
    );
  });

  test(
    `${name}: rows of a newer version are followed and never written or cut, until it is no longer so`,
    shared,
    async () => {
      const store = await harness.fresh();
      const db = await store.open();
      const log = memoryLog();
      await appendAll(log, jobAppends(PLAN));
      await projectWith(buildOf({ job: 2 }), log, store);
      const { lines, logger } = warnings();
      const runner = runnerOver(log, store, { logger });
      const old = await appendAll(log, jobAppends({ ...PLAN, seed: 2 }));
      assert.equal(await runner.caughtUp(old ?? '', 500), false, 'nobody else is there to project it');
      assert.equal((await modesOf(db)).length, 1);
      const limits = { jobs: '2027', receipts: '2027' };
      assert.deepEqual(await purgeOnce({ db, models: READ_MODELS }, limits), { gone: 0, more: false });
      // A build that knows them does, and with a model more: its checkpoint is of another set.
      const more: ReadModel = { name: 'further', version: 1, tables: [], project: () => [] };
      await projectWith([...buildOf({ job: 2 }), more], log, store);
      assert.ok(await runner.caughtUp(old ?? '', PATIENCE_MS), 'its rows are followed');
      assert.deepEqual(await modesOf(db), ['of 2', 'of 2']);
      const models = [{ model: 'job', stored: 2, build: 1 }];
      const line =
        'rows of a newer version of the read models: this process leaves them to those who know it';
      assert.deepEqual(lines, [[line, { models }]]);
      // Taken back by hand: a rebuild by an older build refuses to.
      await writeModelVersions(db, [{ name: 'job', version: 1 }]);
      const last = await appendAll(log, jobAppends({ ...PLAN, seed: 3 }));
      assert.ok(await runner.caughtUp(last ?? '', PATIENCE_MS));
      await runner.stop();
      assert.deepEqual(new Set(await modesOf(db)), new Set(['of 2', 'demo']));
    },
  );

  test(
    `${name}: a rebuild by a newer version between two batches: not one row of the older is written after it`,
    shared,
    async () => {
      const store = await harness.fresh();
      const db = await store.open();
      const log = memoryLog();
      const { lines, logger } = warnings();
      // The session has begun, and its first batch is behind it, when the versions are stamped.
      const runner = runnerOver(log, store, { logger });
      const first = await appendAll(log, jobAppends(PLAN));
      assert.ok(await runner.caughtUp(first ?? '', PATIENCE_MS));
      await writeModelVersions(db, [{ name: 'job', version: 2 }]);
      const before = asStored(await rowsAfter(recorded(log)));
      const last = await appendAll(log, jobAppends({ ...PLAN, seed: 2 }));
      assert.equal(await runner.caughtUp(last ?? '', 500), false);
      assert.deepEqual(await allRows(db), before);
      assert.equal(lines.length, 1);
      await runner.stop();
    },
  );

  test(
    `${name}: who begins to tell a model that another has begun meanwhile begins again, by what stands then`,
    shared,
    async () => {
      const store = await harness.fresh();
      const log = memoryLog();
      await appendAll(log, jobAppends(PLAN));
      let other: Promise<void> | null = null;
      // Between this session's look at the checkpoints and its first batch a newer build tells all there is.
      const slow: EventLog = {
        ...log,
        async head() {
          other ??= projectWith(buildOf({ job: 2 }), log, store);
          await other;
          return log.head();
        },
      };
      const more: ReadModel = { name: 'further', version: 1, tables: [], project: () => [] };
      const runner = runnerOver(slow, store, { models: [...READ_MODELS, more] });
      const last = await appendAll(log, jobAppends({ ...PLAN, seed: 2 }));
      await runner.caughtUp(last ?? '', 500);
      await runner.stop();
      const db = await store.open();
      assert.deepEqual(new Set(await modesOf(db)), new Set(['of 2']));
      assert.equal((await readModelVersions(db)).get('job'), 2);
    },
  );
}
