// Fixed windows that all processes on one Postgres share: one upsert with a time limit. While Postgres does not answer in
// time, each process counts separately, so that a quota neither fails nor delays a call.
import { clearInterval, setInterval } from 'node:timers';
import { sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { index, integer, pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import { toBase64url } from '#src/domain/encoding.ts';
import { batched } from '#src/lib/batched.ts';
import { withTimeout } from '#src/lib/time.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Quota, QuotaRule } from '#src/ports/quota.ts';
import type { KeyedHash } from '#src/ports/signer.ts';
import { idOf, type QuotaWindow, stateOf, Windows } from './memory.ts';

export type QuotaDb = PgDatabase<PgQueryResultHKT>;

export type PostgresQuotaOptions = {
  /** The database, migrated. */
  readonly open: () => Promise<QuotaDb>;
  readonly keyedHash: KeyedHash;
  readonly logger: Logger;
  /** Stops the probes and the deletion of ended windows. */
  readonly ending: AbortSignal;
  /** ms within which Postgres must answer. */
  readonly limitMs?: number;
  /** ms between two probes while it does not answer. */
  readonly retryMs?: number;
  /** ms between two deletions of ended windows. */
  readonly sweepMs?: number;
};

/** For the first connection and the migration, at least. */
const START_MS = 2000;

/** Probes that wait for a frozen server; each occupies a connection. */
const PROBES_MAX = 3;

type Count = { readonly key: string; readonly units: 0 | 1; readonly windowMs: number };

/** Resolves when Postgres has answered, after 2 s or `limitMs` at the latest. */
export async function postgresQuota(options: PostgresQuotaOptions): Promise<Quota> {
  const { open, keyedHash, logger, ending, limitMs = 250, retryMs = 1000, sweepMs = 60_000 } = options;
  /** As Postgres last returned them; while it does not answer, with the units of this process. */
  const seen = new Windows();
  let state: 'unknown' | 'answers' | 'lost' = 'unknown';
  let probing = 0;

  /** Empty: nothing was counted. */
  const count = batched(async (counts: readonly Count[]): Promise<ReadonlyMap<Count, QuotaWindow>> => {
    if (state !== 'answers') return new Map();
    const counting = open().then((db) => upsert(db, counts));
    return withTimeout(counting, limitMs, noAnswer).catch(lost);
  });

  function lost(cause: unknown) {
    if (!ending.aborted) logger.condition('quotas', 'single', {}, cause);
    state = 'lost';
    return new Map();
  }

  /** Counts together again if Postgres answers within `withinMs`. */
  async function probe(withinMs: number): Promise<void> {
    if (state === 'answers' || probing >= PROBES_MAX) return;
    probing++;
    const begin = performance.now();
    try {
      await upsert(await open(), []);
    } finally {
      probing--;
    }
    if (performance.now() - begin > withinMs) return;
    logger.condition('quotas', null);
    state = 'answers';
  }

  /** Adds `units`, refused ones included, and returns the window. A full window costs no statement. */
  async function add(rule: QuotaRule, key: string, units: Count['units']): Promise<QuotaWindow> {
    const known = seen.find(rule, key);
    if (known.points >= rule.maxRequests) return { ...known, points: known.points + units };
    // The table reveals neither the rule nor the payer, host or address.
    const hashed = toBase64url(keyedHash.mac('quota', `${idOf(rule)} ${key}`));
    const window = await count({ key: hashed, units, windowMs: rule.windowMs });
    if (window === null) return units === 0 ? seen.find(rule, key) : seen.add(rule, key);
    // What this process counted alone stays counted where it is more.
    if (window.points > seen.find(rule, key).points) seen.set(rule, key, window);
    return window;
  }

  const startMs = Math.max(START_MS, limitMs);
  await withTimeout(probe(startMs), startMs, noAnswer).catch(lost);
  // Half the limit: a server that answers just in time would be lost and found alternately.
  every(retryMs, ending, () => probe(limitMs / 2));
  every(sweepMs, ending, async () => sweep(await open()));

  return {
    take: async (rule, key) => stateOf(rule, await add(rule, key, 1)),
    async look(rule, key) {
      const { points, resetMs } = await add(rule, key, 0);
      return stateOf(rule, { points: points + 1, resetMs });
    },
  };
}

const noAnswer = () => new Error('no answer in time');

/** Runs `work` every `ms` until `ending` aborts; keeps no process alive. Ignores errors: the next run tries again. */
function every(ms: number, ending: AbortSignal, work: () => Promise<unknown>): void {
  // Under Deno's check the types of Bun and of Node both declare it.
  const timer = setInterval(() => void work().catch(() => undefined), ms) as NodeJS.Timeout;
  timer.unref();
  ending.addEventListener('abort', () => clearInterval(timer), { once: true });
}

export const quotaWindows = pgTable(
  'quota_windows',
  {
    /** A keyed hash: the table contains no payer, host or address in plain text. */
    key: text().primaryKey(),
    points: integer().notNull(),
    expire: timestamp({ precision: 3, withTimezone: true }),
  },
  // For deleting ended windows.
  (table) => [index('quota_windows_expire').on(table.expire)],
);

const { key, points, expire } = quotaWindows;

/**
 * Counts in order, in one statement, and returns each window as it was after its own count. All times are the
 * database's, since the clocks of processes differ. Rows are locked in the order of their keys, so that no two processes
 * deadlock. A window without points has not begun. A window that ends more than a minute later than a new one would was
 * created before the database's clock was set back, and is replaced.
 */
async function upsert(db: QuotaDb, counts: readonly Count[]): Promise<ReadonlyMap<Count, QuotaWindow>> {
  const totals = new Map<string, { k: string; n: number; ms: number }>();
  for (const { key: k, units, windowMs: ms } of counts)
    totals.set(k, { k, n: (totals.get(k)?.n ?? 0) + units, ms });
  const isOpen = sql`${points} > 0 and ${expire} > now() and ${expire} <= excluded.expire + interval '1 minute'`;
  const counted = await db
    .insert(quotaWindows)
    .select(
      // No count waits for the disk: a crash of the database may lose the last counts.
      sql`select w.k, w.n, now() + w.ms * interval '1 millisecond'
        from json_to_recordset(${JSON.stringify([...totals.values()])}::text::json) as w (k text, n integer, ms bigint),
          (select set_config('synchronous_commit', 'off', true) as commit) as quick
        where quick.commit = 'off'
        order by w.k collate "C"`,
    )
    .onConflictDoUpdate({
      target: key,
      set: {
        points: sql`case when ${isOpen} then ${points} else 0 end + excluded.points`,
        expire: sql`case when ${isOpen} then ${expire} else excluded.expire end`,
      },
    })
    .returning({
      key,
      points,
      resetMs: sql`greatest(0, extract(epoch from ${expire} - now()) * 1000)`.mapWith(Number),
    });
  const left = new Map(counted.map((row) => [row.key, row]));
  const windows = new Map<Count, QuotaWindow>();
  // Backwards: the last count sees all units, the one before it those without the last one's.
  for (const each of counts.toReversed()) {
    const row = left.get(each.key);
    if (row === undefined) continue;
    windows.set(each, { points: row.points, resetMs: row.resetMs });
    row.points -= each.units;
  }
  return windows;
}

/** Deletes the ended windows, except those that another statement has locked: so it waits for none. */
async function sweep(db: QuotaDb): Promise<void> {
  const ended = sql`select ${key} from ${quotaWindows} where ${expire} < now() limit 10000 for update skip locked`;
  await db.delete(quotaWindows).where(sql`${key} = any(array(${ended}))`);
}
