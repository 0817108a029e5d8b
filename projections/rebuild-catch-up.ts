// The way to where the live rows stand: without any lock while it is long, and the last bit inside the transaction that
// swaps or compares.
import { sql } from 'drizzle-orm';
import type { Clock } from '#src/ports/clock.ts';
import type { RebuildStore, RebuildTransaction } from '#src/ports/rebuild-store.ts';
import { type Build, type Fold, foldPage, verifySample } from './rebuild-fold.ts';
import { refuseOtherLog } from './rebuild-guards.ts';
import { CannotRebuild, fenced, RebuildFailed, workIn, writeCounts } from './rebuild-lock.ts';
import { judgedPages, type PageDeps } from './rebuild-pages.ts';
import { applyHorizon, type Horizon, readHorizon } from './rebuild-swap.ts';
import { type Ends, highest, lowest, readTargets, type Targets } from './rebuild-target.ts';
import { type Db, rowsOf } from './rows.ts';

export type RebuildWork = PageDeps & {
  readonly store: RebuildStore<Db>;
  readonly clock: Clock;
  readonly build: Build;
  readonly ends: Ends;
  readonly otherLog: boolean;
  readonly batchSize: number;
  readonly report: (fold: Fold) => void;
};

/** So few events more are folded inside the last transaction, where others wait. */
const NEAR_EVENTS = 1000;

/** Folds until the live rows are near; counts of what was read and of what was handled must agree. */
export async function catchUp(work: RebuildWork, begin: Fold): Promise<Fold> {
  const { store, build, ends } = work;
  let fold = begin;
  for (let read = NEAR_EVENTS + 1; read > NEAR_EVENTS; ) {
    read = 0;
    const targets = await store.transaction(({ db }) => readTargets(db, build.models, ends));
    const handled = fold.counts.handled;
    for await (const page of judgedPages(
      work,
      fold.checkpoint?.position ?? null,
      lowest(targets),
      work.batchSize,
    )) {
      read += page.read;
      fold = await fenced(store, (tx) => foldPage(tx, build, fold, page, targets.of));
      work.report(fold);
    }
    if (fold.counts.handled !== handled + read)
      throw new RebuildFailed(`${read} events were read and ${fold.counts.handled - handled} handled`);
  }
  return fold;
}

/** What the tables hold must be as much as was folded. Then their old rows go, before anybody has to wait for it. */
export async function verifyCounts({ store, build, ends }: RebuildWork, fold: Fold): Promise<Fold> {
  const { place, shapes } = build;
  return fenced(store, async ({ db }) => {
    await workIn(db, place, 'beside');
    for (const { name } of shapes) {
      const [row] = await rowsOf<{ n: number }>(
        db,
        sql`select count(*)::int as n from ${sql.identifier(name)}`,
      );
      const folded = fold.counts.rows[name] ?? 0;
      if (row?.n !== folded)
        throw new RebuildFailed(
          `${name} has ${row?.n} rows, and ${folded} were folded: the live tables stay`,
        );
    }
    await verifySample(db, build, fold);
    return { ...fold, ...(await withoutOld(db, build, ends, fold)) };
  });
}

async function withoutOld(db: Db, { place, models, shapes }: Build, ends: Ends, fold: Fold) {
  await workIn(db, place, 'live');
  const horizon = await readHorizon(db, await readTargets(db, models, ends));
  const gone = await applyHorizon(db, place, shapes, horizon);
  const rows = { ...fold.counts.rows };
  for (const [table, count] of gone) rows[table] = (rows[table] ?? 0) - count;
  const counts = { ...fold.counts, rows };
  await writeCounts(db, counts);
  // Rows that went are neither to be found again nor to be folded on.
  return { counts, recent: new Map(), sample: new Map() };
}

export type Finished = {
  readonly fold: Fold;
  readonly targets: Targets;
  readonly horizon: Horizon;
  /** Table → rows without those behind the horizon. */
  readonly rows: Fold['counts']['rows'];
};

/** The last bit is too long for one transaction, which is to be rolled back: catch up once more. */
export class Behind extends Error {}

/** The last bit, in the transaction that goes on with it; throws `Behind`. */
export async function finishFold(
  work: RebuildWork,
  tx: RebuildTransaction<Db>,
  begin: Fold,
): Promise<Finished> {
  const { build, ends } = work;
  const { place, models, shapes } = build;
  await workIn(tx.db, place, 'live');
  const targets = await readTargets(tx.db, models, ends);
  refuseOtherLog(targets, work.otherLog);
  const horizon = await readHorizon(tx.db, targets);
  const stands = begin.checkpoint?.position ?? '';
  if (stands > lowest(targets))
    throw new CannotRebuild('the live rows were taken back meanwhile: run it again');
  let fold = begin;
  if (stands < highest(targets)) {
    for await (const page of judgedPages(
      work,
      stands === '' ? null : stands,
      highest(targets),
      work.batchSize,
    )) {
      fold = await foldPage(tx, build, fold, page, targets.of);
      if (
        fold.counts.handled - begin.counts.handled > 4 * NEAR_EVENTS &&
        lowest(targets) === highest(targets)
      )
        throw new Behind();
    }
  }
  await verifySample(tx.db, build, fold);
  const rows = { ...fold.counts.rows };
  for (const [table, gone] of await applyHorizon(tx.db, place, shapes, horizon))
    rows[table] = (rows[table] ?? 0) - gone;
  await workIn(tx.db, place, 'live');
  return { fold, targets, horizon, rows };
}
