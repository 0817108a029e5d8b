// All queries of the rows, over a store that may be unavailable: each returns within its time limit or throws the fault
// `read_models_unavailable`. Links, statuses and the meaning of a missing row are up to http.

import { sql } from 'drizzle-orm';
import { Fault } from '#src/domain/refusal.ts';
import { isDefect } from '#src/lib/defect.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import { monitoringTotals } from './monitoring/table.ts';
import { receipts } from './receipt/table.ts';
import { MODELS, type Needs } from './registry.ts';
import type { Db } from './rows.ts';
import { retention } from './table.ts';
import { revokedReceipts } from './trust/query.ts';
import { trustTotals } from './trust/table.ts';

/** Queries about the store as a whole: how many rows it holds, how many receipts do not verify. */
export function storeQueries(db: Db) {
  const counted = db
    .select({
      jobs: sql<number>`coalesce((select t.started from ${monitoringTotals} t where t.id = 'all'), 0)
        - coalesce((select r.jobs_purged from ${retention} r where r.id = 'live'), 0)`.mapWith(Number),
      receipts: sql<number>`coalesce((select t.receipts from ${trustTotals} t where t.id = 'all'), 0)
        - coalesce((select r.receipts_purged from ${retention} r where r.id = 'live'), 0)`.mapWith(Number),
    })
    .from(sql`(select 1) one`)
    .prepare('store_counts');
  // In the minute of the horizon some receipts are purged: revoked ones are counted from the next minute on.
  const retained = sql`left(m."id", 16) >
    (select coalesce(left(max(r."receipts_before"), 16), '') from ${retention} r)`;
  const unverified = db
    .select({ count: sql<number>`count(*) + ${revokedReceipts(retained)}`.mapWith(Number) })
    .from(receipts)
    .where(sql`not ${receipts.verified}`)
    .prepare('receipts_unverified');
  return {
    /** Jobs and receipts in store: counted by what came and what went, not by a scan. */
    async counts(): Promise<{ readonly jobs: number; readonly receipts: number }> {
      const [row] = await counted.execute();
      if (row === undefined) throw new Error('a query without a table has one row');
      return row;
    },
    /** Of the receipts in store. */
    async countUnverified(): Promise<number> {
      const [row] = await unverified.execute();
      return row?.count ?? 0;
    },
  };
}

const store = {
  queries: storeQueries,
  needs: { counts: 'whole', countUnverified: 'whole' },
} as const;

const GROUPS = { ...MODELS, store };

type Group = keyof typeof GROUPS;
export type ReadModels = { readonly [G in Group]: ReturnType<(typeof GROUPS)[G]['queries']> };

/** A frozen database does not answer: the caller gets a fault after this time. */
const ANSWER_MS = 5000;
/** At the start of the process the first queries wait for the store to open. */
const OPEN_MS = 1000;

export type ReadModelsDeps = {
  readonly store: { open(): Promise<Db> };
  readonly clock: Clock;
  readonly logger: Logger;
  /** Whether the rows have caught up with the log since the process began; known within a second. */
  readonly ready: () => Promise<boolean>;
};

export function readModels({ store, clock, logger, ready }: ReadModelsDeps): ReadModels {
  const within = timeLimits({ clock, logger });
  const groups = (Object.keys(GROUPS) as Group[]).map((name) => [name, guarded(name)] as const);
  return Object.fromEntries(groups) as unknown as ReadModels;

  function guarded<G extends Group>(name: G): ReadModels[G] {
    let made: { readonly db: Db; readonly queries: Record<string, Ask> } | null = null;
    const ask = (query: string, needs: Needs, given: readonly unknown[]): Promise<unknown> =>
      within(OPEN_MS, async (allow) => {
        const db = await store.open();
        if (made?.db !== db)
          made = { db, queries: GROUPS[name].queries(db) as unknown as Record<string, Ask> };
        const { queries } = made;
        // Resolves within its own time limit.
        if (needs === 'whole') {
          allow(Number.POSITIVE_INFINITY);
          if (!(await ready())) throw new Error('still replaying');
        }
        allow(ANSWER_MS);
        return queries[query]?.(...given);
      });
    const asks = Object.entries<Needs>(GROUPS[name].needs).map(([query, needs]): [string, Ask] => [
      query,
      (...given) => ask(query, needs, given),
    ]);
    return Object.fromEntries(asks) as unknown as ReadModels[G];
  }
}

type Ask = (...given: readonly unknown[]) => Promise<unknown>;

/**
 * Fails with a `Fault` if the store is unavailable or `work` takes longer than `limitMs`, and with the error itself if that
 * is a defect of this program (logged if its answer was given before). `allow` begins another limit; it throws where the
 * one before has passed.
 */
type Within = <T>(limitMs: number, work: (allow: (limitMs: number) => void) => Promise<T>) => Promise<T>;

/** How late a limit may be noticed. */
const LOOK_MS = 50;
/** A query keeps its memory until the driver gives it up: a frozen database must not collect those of all readers. */
const UNSETTLED_MAX = 4096;
/** While so many are unsettled, one query in this time is let through. */
const TRY_MS = 1000;

type Limit = { until: number; limitMs: number; readonly reject: (fault: Fault) => void };

/** Limits of all queries in progress, by one timer: a timer for each costs a tenth of a read by key. */
function timeLimits({ clock, logger }: Pick<ReadModelsDeps, 'clock' | 'logger'>): Within {
  const waiting = new Set<Limit>();
  /** Their callers were answered; the driver may answer still. */
  const overdue = new Set<Limit>();
  let looking = false;
  let triedAt = Number.NEGATIVE_INFINITY;
  async function look(): Promise<void> {
    looking = true;
    while (waiting.size > 0) {
      await clock.sleep(LOOK_MS);
      const now = clock.monotonic();
      for (const limit of waiting) {
        if (now < limit.until) continue;
        waiting.delete(limit);
        overdue.add(limit);
        limit.reject(
          readModelsUnavailable(new Error(`the read models did not answer within ${limit.limitMs} ms`)),
        );
      }
    }
    looking = false;
  }
  return (limitMs, work) => {
    const isFull = waiting.size + overdue.size >= UNSETTLED_MAX;
    const now = clock.monotonic();
    if (isFull && now - triedAt < TRY_MS)
      return Promise.reject(
        readModelsUnavailable(new Error(`${UNSETTLED_MAX} queries are without an answer`)),
      );
    if (isFull) triedAt = now;
    return new Promise((resolve, reject) => {
      const limit: Limit = { until: now + limitMs, limitMs, reject };
      const allow = (ms: number) => {
        if (!waiting.has(limit)) throw new Error('the limit has passed');
        limit.limitMs = ms;
        limit.until = clock.monotonic() + ms;
      };
      waiting.add(limit);
      if (!looking) void look();
      work(allow).then(
        (answer) => {
          // The store works: what it has not answered by now is lost.
          if (waiting.delete(limit) && isFull) overdue.clear();
          overdue.delete(limit);
          resolve(answer);
        },
        (cause: unknown) => {
          const isLate = !waiting.delete(limit);
          overdue.delete(limit);
          if (!isDefect(cause)) return reject(readModelsUnavailable(cause));
          if (isLate) logger.bug('a query of the read models failed behind its answer', { cause });
          reject(cause);
        },
      );
    });
  };
}

/** The fault that a reader gets while the rows cannot be read, or are not known to be complete. */
export function readModelsUnavailable(cause?: unknown): Fault {
  return new Fault('read_models_unavailable', 'The read models are unavailable: try again shortly.', {
    cause,
    retryAfterSeconds: 1,
  });
}
