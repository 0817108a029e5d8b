// Fixed windows that all processes on one Postgres share: one upsert with a time limit. While Postgres does not answer in
// time, each process counts separately, so that a quota neither fails nor delays a call.
import { clearTimeout, setTimeout } from 'node:timers';
import { sql } from 'drizzle-orm';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { index, integer, pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import { toBase64url } from '#src/domain/encoding.ts';
import { withTimeout } from '#src/lib/time.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Quota, QuotaRule } from '#src/ports/quota.ts';
import type { KeyedHash } from '#src/ports/signer.ts';
import { stateOf, type Window, Windows } from './memory.ts';

export type Db = PgDatabase<PgQueryResultHKT>;

export type PostgresQuotaOptions = {
  /** The database, migrated. */
  readonly open: () => Promise<Db>;
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

/** For the first connection and the migration. */
const START_MS = 2000;
/** Limit of probes that wait for a frozen server; each occupies a connection. */
const HANGING_MAX = 3;
const BATCH_MAX = 1000;

type Count = { readonly key: string; readonly units: number; readonly windowMs: number };

/** Resolves when Postgres has answered, after 2 s at the latest. */
export async function postgresQuota(options: PostgresQuotaOptions): Promise<Quota> {
  const { open, keyedHash, logger, ending, limitMs = 250, retryMs = 1000, sweepMs = 60_000 } = options;
  /** As the last upserts returned them. */
  const shared = new Windows();
  /** Counted while Postgres did not answer; the shared windows lack these units. */
  const alone = new Windows();
  let connected = false;
  let wasLost = false;
  let hanging = 0;

  const counted = async (counts: readonly Count[]) => upsert(await open(), counts);
  const count = batched(async (counts) => {
    if (!connected) return null;
    try {
      return await inTime(counted(counts), limitMs);
    } catch (cause) {
      return lost(cause);
    }
  });

  function lost(cause: unknown): null {
    connected = false;
    wasLost = true;
    if (ending.aborted) return null;
    const refusal = refusalOf(cause);
    const problem =
      refusal === null
        ? 'Postgres does not answer: each process counts quotas alone until it does'
        : `Postgres refuses the quota tables (${refusal}): each process counts quotas alone until it accepts`;
    logger.warn(problem, { cause });
    return null;
  }

  async function connect(withinMs: number): Promise<void> {
    if (connected || hanging >= HANGING_MAX) return;
    hanging += 1;
    const probe = counted([]).finally(() => hanging--);
    await inTime(probe, withinMs);
    if (connected) return;
    connected = true;
    if (wasLost) logger.info('Postgres answers again: all processes count quotas together');
  }

  /** The table reveals neither the rule nor the payer, host or address. */
  const hashed = ({ name, windowMs }: QuotaRule, key: string): string =>
    toBase64url(keyedHash.mac('quota', `${name} ${windowMs} ${key}`));

  /** Adds `units`, refused ones included, and returns the window. A full window costs no statement. */
  async function add(rule: QuotaRule, key: string, units: number): Promise<Window> {
    const known = sumOf(shared.find(rule, key), alone.find(rule, key));
    if (units >= 0 && known.points >= rule.maxRequests) {
      return { points: known.points + units, resetMs: known.resetMs };
    }
    const { windowMs } = rule;
    const window = await count({ key: hashed(rule, key), units, windowMs });
    if (window === null) return sumOf(shared.find(rule, key), alone.add(rule, key, units));
    shared.set(rule, key, window);
    return sumOf(window, alone.find(rule, key));
  }

  await connect(START_MS).catch(lost);
  // Half the limit: a server that answers just in time would be lost and found alternately.
  every(retryMs, ending, () => connect(limitMs / 2));
  every(sweepMs, ending, async () => sweep(await open()));

  return {
    async take(rule, key, units = 1) {
      return stateOf(rule, await add(rule, key, units));
    },
    async look(rule, key) {
      const { points, resetMs } = await add(rule, key, 0);
      return stateOf(rule, { points: points + 1, resetMs });
    },
    async giveBack(rule, key, units = 1) {
      await add(rule, key, -units);
    },
  };
}

const sumOf = (one: Window, other: Window): Window =>
  other.points === 0
    ? one
    : { points: one.points + other.points, resetMs: Math.max(one.resetMs, other.resetMs) };

const inTime = <T>(answer: Promise<T>, limitMs: number): Promise<T> =>
  withTimeout(answer, limitMs, () => new Error(`no answer within ${limitMs} ms`));

/** A connection that fails or ends (08, 57P) and a statement that was cancelled (57014) are no answer. */
const NO_ANSWER = /^(08|57P|57014)/;

/** Code and message of Postgres's own error (no privilege, no such database); null if Postgres did not answer. */
function refusalOf(cause: unknown): string | null {
  if (!(cause instanceof Error)) return null;
  if (cause.name !== 'PostgresError' || !('code' in cause)) return refusalOf(cause.cause);
  return NO_ANSWER.test(String(cause.code)) ? null : `${cause.code}: ${cause.message}`;
}

/** Runs `work` every `ms` until `ending` aborts; keeps no process alive. Ignores errors: the next run tries again. */
function every(ms: number, ending: AbortSignal, work: () => Promise<unknown>): void {
  const timer = setTimeout(() => {
    timer.refresh();
    void work().catch(() => undefined);
  }, ms);
  timer.unref();
  ending.addEventListener('abort', () => clearTimeout(timer), { once: true });
}

type Run = (counts: readonly Count[]) => Promise<readonly Window[] | null>;

/** One call of `run` at a time; counts that arrive meanwhile share the next call. `run` never rejects. */
function batched(run: Run): (count: Count) => Promise<Window | null> {
  const waiting: { readonly count: Count; readonly done: (window: Window | null) => void }[] = [];
  let running = false;
  async function drain(): Promise<void> {
    running = true;
    // Counts of the same turn share a call.
    await null;
    while (waiting.length > 0) {
      const batch = waiting.splice(0, BATCH_MAX);
      const windows = await run(batch.map(({ count }) => count));
      for (const [index, { done }] of batch.entries()) done(windows?.[index] ?? null);
    }
    running = false;
  }
  return (count) =>
    new Promise((done) => {
      waiting.push({ count, done });
      if (!running) void drain();
    });
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
async function upsert(db: Db, counts: readonly Count[]): Promise<Window[]> {
  const totals = new Map<string, { k: string; n: number; ms: number }>();
  for (const { key: k, units, windowMs: ms } of counts)
    totals.set(k, { k, n: (totals.get(k)?.n ?? 0) + units, ms });
  const isOpen = sql`(${points} > 0 and ${expire} > now() and ${expire} <= excluded.expire + interval '1 minute')
    is true`;
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
        points: sql`greatest(0, case when ${isOpen} then ${points} else 0 end + excluded.points)`,
        expire: sql`case when ${isOpen} then ${expire} else excluded.expire end`,
      },
    })
    .returning({
      key,
      points,
      resetMs: sql`greatest(0, extract(epoch from ${expire} - now()) * 1000)`.mapWith(Number),
    });
  const after = new Map(counted.map((row) => [row.key, row]));
  // Backwards: the last count sees all units, the one before it those without the last one's.
  const windows = counts.toReversed().map((each): Window => {
    const row = after.get(each.key);
    if (row === undefined) throw new Error('a window was not counted');
    const window = { points: Math.max(0, row.points), resetMs: row.resetMs };
    row.points -= each.units;
    return window;
  });
  return windows.reverse();
}

/** Deletes the ended windows; skips those that another process is deleting. */
export async function sweep(db: Db, rows = 1000): Promise<void> {
  const ended = sql`select ${key} from ${quotaWindows} where ${expire} < now()
    order by ${expire} limit ${rows} for update skip locked`;
  for (;;) {
    const gone = await db.delete(quotaWindows).where(sql`${key} = any(array(${ended}))`).returning({ key });
    if (gone.length < rows) return;
  }
}
