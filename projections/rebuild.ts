// A rebuild: read models told anew from the log beside the live ones, which are read on meanwhile; verified; swapped in
// one transaction, or compared. What events mean, how they are judged and folded is the projector's own code.
import { sql } from 'drizzle-orm';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { RebuildStore, RebuildTransaction } from '#src/ports/rebuild-store.ts';
import type { JudgeReceipt } from './batch.ts';
import { type Checkpoint, modelSet, tryProjectorLock } from './checkpoint.ts';
import { logHolds } from './last-event.ts';
import { Behind, catchUp, finishFold, type RebuildWork, verifyCounts } from './rebuild-catch-up.ts';
import { type BehindHorizon, compareTable, countBehind, type TableComparison } from './rebuild-compare.ts';
import type { Fold } from './rebuild-fold.ts';
import {
  refuseForeign,
  refuseNewerRows,
  refuseNewerSchema,
  refuseOtherLog,
  refuseUnable,
} from './rebuild-guards.ts';
import {
  CannotRebuild,
  dropBeside,
  fenced,
  findPlace,
  findStanding,
  makeBeside,
  RebuildFailed,
  takeLock,
  workIn,
} from './rebuild-lock.ts';
import { jsonColumns } from './rebuild-rows.ts';
import { countLate, swapTables } from './rebuild-swap.ts';
import { areAhead, endsOf, lowest, readTargets } from './rebuild-target.ts';
import { READ_MODELS, type ReadModel } from './registry.ts';
import { type Db, rowsOf, type TableShape, tableShapes } from './rows.ts';

export type RebuildDeps = {
  readonly log: Pick<EventLog, 'readAll' | 'readStream' | 'head'>;
  readonly store: RebuildStore<Db>;
  readonly judgeReceipt: JudgeReceipt;
  /** For the transparency log's tree. */
  readonly clock: Clock;
};

export type RebuildProgress = {
  /** Events handled: of all, with those before an interruption, and of this run. */
  readonly events: number;
  readonly eventsHere: number;
  /** 0 to 1: how many of the jobs that the live rows know of were begun; null where they know of none. */
  readonly share: number | null;
};

export type RebuildOptions = {
  /** Those to rebuild, of the registry or changed ones; their tables are at the store's schema. */
  readonly models?: readonly ReadModel[];
  /** Compare instead of replacing. */
  readonly check?: boolean;
  /** Live rows of another log are to be replaced; without it they are refused. */
  readonly otherLog?: boolean;
  /** Events in one transaction. */
  readonly batchSize?: number;
  /** Told at the beginning, then after each transaction. */
  readonly onProgress?: (progress: RebuildProgress) => void;
};

export type RebuildResult = Omit<RebuildProgress, 'share'> & {
  readonly outcome: 'swapped' | 'equal' | 'different';
  /** Position up to which the rows tell. */
  readonly position: string;
  /** Table → rows, as they are now. */
  readonly rows: Readonly<Record<string, number>>;
  /** Of a comparison: the tables that differ. */
  readonly different: readonly TableComparison[];
  /** Of a comparison, which leaves them out: live rows told behind the purge's horizon. */
  readonly behindHorizon: BehindHorizon | null;
};

const EVENTS_BY_COPY = 8192;
/** An embedded store takes the rows as one parameter. */
const EVENTS_BY_STATEMENT = 1000;
/** Readers and the projector let go within moments; who holds a table longer than this is not waited for. */
const SWAP_PATIENCE_MS = 60_000;
const SWAP_PAUSE_MS = { busy: 20, locked: 300 };

/**
 * Throws `CannotRebuild` where it cannot be done now and `RebuildFailed` where what was built is not to be believed; the
 * live rows are as they were then. Ended in the middle, it goes on there the next time.
 */
export async function rebuild(deps: RebuildDeps, options: RebuildOptions = {}): Promise<RebuildResult> {
  const { work, fold } = await begin(deps, options);
  try {
    const near = await nearEnd(work, fold);
    const finish = options.check ? await compared(work, near) : await swapped(work, near);
    const { counts, checkpoint } = finish.fold;
    return {
      outcome: finish.outcome,
      events: counts.handled,
      eventsHere: counts.handled - fold.counts.handled,
      position: checkpoint?.position ?? '',
      rows: finish.rows,
      different: finish.different,
      behindHorizon: finish.behindHorizon,
    };
  } catch (error) {
    // What is not to be believed is not to be gone on with either.
    if (error instanceof RebuildFailed)
      await fenced(work.store, ({ db }) => dropBeside(db, work.build.place));
    throw error;
  }
}

/** Locked, migrated, and with tables beside: new ones, or those of a rebuild of the same that was killed. */
async function begin(deps: RebuildDeps, options: RebuildOptions): Promise<{ work: RebuildWork; fold: Fold }> {
  const { store, log, clock } = deps;
  const { models = READ_MODELS, check = false, otherLog = false, onProgress } = options;
  const shapes = tableShapes(models);
  const known = await endsOf(log);
  await ready(store, shapes, check);
  await takeLock(store, (ms) => clock.sleep(ms));
  const place = await findPlace(store);
  const { ends, targets } = await store.transaction(async ({ db }) => {
    await refuseNewerRows(db, models);
    const found = { ...known, ahead: await areAhead(db, log, known) };
    return { ends: found, targets: await readTargets(db, models, found) };
  });
  refuseOtherLog(targets, otherLog);
  refuseForeign(targets, check);

  const set = modelSet(models);
  const versions = models.map(({ name, version }) => [name, version]);
  const identity = JSON.stringify([ends.origin, targets.foreign, versions, store.schema.version, check]);
  const fits = (checkpoint: Checkpoint) => logHolds(log, [checkpoint]);
  const stands = await findStanding(store, place, { identity, set, until: lowest(targets), fits });
  const standing = stands ?? (await makeBeside(store, place, identity));
  const build = { place, models, shapes, json: jsonColumns(models), set };
  const jobs = await jobsKnown(store);
  const before = standing.counts.handled;
  const report = ({ counts: { handled, started } }: Pick<Fold, 'counts'>) => {
    const share = jobs === 0 ? null : Math.min(1, started / jobs);
    onProgress?.({ events: handled, eventsHere: handled - before, share });
  };
  report(standing);
  const batchSize = options.batchSize ?? (store.copies ? EVENTS_BY_COPY : EVENTS_BY_STATEMENT);
  return {
    work: { ...deps, build, ends, otherLog, batchSize, report },
    fold: { ...standing, recent: new Map(), sample: new Map() },
  };
}

/** The live tables at this schema, and a user who may replace them. */
async function ready(store: RebuildStore<Db>, shapes: readonly TableShape[], check: boolean): Promise<void> {
  const live = await store.transaction(async ({ db }) => {
    await refuseUnable(db, shapes, check);
    return refuseNewerSchema(store, db);
  });
  if (!check) await store.migrate();
  else if (live === 'older')
    throw new CannotRebuild('the live tables are not at the schema of this version: migrate them first');
}

async function jobsKnown(store: RebuildStore<Db>): Promise<number> {
  const ask = sql`select "started"::int as started from "monitoring_totals" where "id" = 'all'`;
  const [row] = await store.transaction(({ db }) => rowsOf<{ started: number }>(db, ask));
  return row?.started ?? 0;
}

const nearEnd = async (work: RebuildWork, fold: Fold): Promise<Fold> =>
  verifyCounts(work, await catchUp(work, fold));

type Finish = Pick<RebuildResult, 'outcome' | 'rows' | 'different' | 'behindHorizon'> & {
  readonly fold: Fold;
};

/** In one snapshot, in which the live rows stand still: no lock is held, and nobody waits. */
async function compared(work: RebuildWork, begun: Fold): Promise<Finish> {
  const { store, build } = work;
  for (let near = begun; ; near = await nearEnd(work, near)) {
    const finish = await fenced(store, (tx) => compareAll(work, tx, near), 'repeatable read').catch(
      unlessBehind,
    );
    if (finish === 'behind') continue;
    await fenced(store, ({ db }) => dropBeside(db, build.place));
    return finish;
  }
}

async function compareAll(work: RebuildWork, tx: RebuildTransaction<Db>, near: Fold): Promise<Finish> {
  const { place, shapes, models } = work.build;
  await refuseNewerSchema(work.store, tx.db);
  await workIn(tx.db, place, 'live');
  await refuseNewerRows(tx.db, models);
  const { fold, horizon } = await finishFold(work, tx, near);
  const tables: TableComparison[] = [];
  for (const shape of shapes) tables.push(await compareTable(tx.db, place, shape, horizon));
  const rows = Object.fromEntries(tables.map(({ table, rows: count }) => [table, count]));
  const different = tables.filter(({ differing }) => differing > 0);
  const behindHorizon = await countBehind(tx.db, place, shapes, horizon);
  return { outcome: different.length === 0 ? 'equal' : 'different', fold, rows, different, behindHorizon };
}

function unlessBehind(error: unknown): 'behind' {
  if (error instanceof Behind) return 'behind';
  throw error;
}

/** Under the projector's lock, tried again while others hold it, or the tables. */
async function swapped(work: RebuildWork, begun: Fold): Promise<Finish> {
  const { store, clock } = work;
  const until = clock.monotonic() + SWAP_PATIENCE_MS;
  for (let near = begun; ; ) {
    const tried = await fenced(store, (tx) => trySwap(work, tx, near)).catch((error: unknown) => {
      if (isLocked(error)) return 'locked' as const;
      return unlessBehind(error);
    });
    if (typeof tried === 'object') return tried;
    if (clock.monotonic() > until)
      throw new CannotRebuild('the live tables are in use without a pause: run it again to go on from here');
    if (tried === 'behind') near = await nearEnd(work, near);
    else {
      await clock.sleep(SWAP_PAUSE_MS[tried]);
      // What came meanwhile is not to be folded under the projector's lock.
      near = await catchUp(work, near);
    }
  }
}

async function trySwap(work: RebuildWork, tx: RebuildTransaction<Db>, near: Fold): Promise<Finish | 'busy'> {
  const { build, ends, store } = work;
  await workIn(tx.db, build.place, 'live');
  if (!(await tryProjectorLock(tx.db))) return 'busy';
  await refuseNewerRows(tx.db, build.models);
  const { fold, targets, horizon, rows } = await finishFold(work, tx, near);
  await countLate(tx.db, build.shapes, horizon);
  const stillTrue = async () => void (await refuseNewerSchema(store, tx.db));
  await swapTables(tx.db, { ...build, targets, origin: ends.origin, last: fold.checkpoint, stillTrue });
  return { outcome: 'swapped', fold, rows, different: [], behindHorizon: null };
}

/** lock_not_available, deadlock_detected: of the error or of one of its causes. */
function isLocked(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && (at.code === '55P03' || at.code === '40P01')) return true;
  }
  return false;
}
