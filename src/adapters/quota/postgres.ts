// Fixed windows that all processes over one Postgres count together. Where it does not answer in time, this process
// counts for itself, on top of what it knows: a call is neither failed nor kept waiting by a quota.
import { toBase64url } from '#src/domain/encoding.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Quota, QuotaRule, QuotaState } from '../../ports/quota.ts';
import type { KeyedHash } from '../../ports/signer.ts';
import { batched } from './batched.ts';
import { startSharing } from './circuit-breaker.ts';
import { fuller, ownWindows, type Window } from './own-windows.ts';
import { type Db, lookShared, type SharedTake, takeShared } from './shared-windows.ts';
import { sweepUntil } from './sweep.ts';

export type PostgresQuotaOptions = {
  /** The handle, with the schema at this version; asked for each time. */
  readonly open: () => Promise<Db>;
  readonly keyedHash: KeyedHash;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly logger: Logger;
  /** Stops all that runs by itself. */
  readonly ending: AbortSignal;
  /** ms that Postgres has for an answer, 250; a call waits for two at most. */
  readonly limitMs?: number;
  /** ms between two tries while it does not answer, 1000. */
  readonly retryMs?: number;
};

/** Connecting and migrating included. A start that waited longer goes on, and shares as soon as it can. */
const BEGIN_MS = 2000;
const KEYS_MAX = 100_000;
const BATCH_MAX = 1000;

/** Resolves when it is known whether Postgres answers, within 2 s. */
export async function postgresQuota(options: PostgresQuotaOptions): Promise<Quota> {
  const { open, keyedHash, clock, logger, ending, limitMs = 250, retryMs = 1000 } = options;
  const own = ownWindows(clock.monotonic, KEYS_MAX);
  const probe = (db: Db) => lookShared(db, ['']);
  const sharing = startSharing({ open, probe, logger, ending, limitMs, retryMs });
  const takeTogether = batched(async (takes: readonly SharedTake[]) => {
    const windows = await sharing.ask((db) => takeShared(db, takes));
    return takes.map((_, index) => windows?.[index] ?? null);
  }, BATCH_MAX);
  const lookTogether = batched(async (keys: readonly string[]) => {
    const windows = await sharing.ask((db) => lookShared(db, keys));
    return keys.map((key) => windows?.get(key) ?? null);
  }, BATCH_MAX);

  /**
   * Neither a payer nor a host nor an address stands in the table. The limit is no part of it: processes that are given
   * different ones, as while a new configuration is rolled out, count together, and each refuses at its own.
   */
  const hashed = ({ name, windowMs }: QuotaRule, key: string): string =>
    toBase64url(keyedHash.mac('quota', `${name} ${windowMs} ${key}`));

  await sharing.begin(BEGIN_MS);
  void sweepUntil({ ending, open, clock });
  return {
    async take(rule, name, units = 1) {
      const { windowMs, maxRequests } = rule;
      const key = hashed(rule, name);
      const known = own.open(key) ?? { points: 0, resetMs: windowMs };
      // Full until it ends: whoever goes on calling costs no round trip.
      if (known.points >= maxRequests) return stateOf(rule, known.points + units, known.resetMs);
      const shared = await takeTogether({ key, units, windowMs });
      const taken = shared === null ? own.take(key, units, windowMs) : own.learn(key, units, shared);
      return stateOf(rule, taken.points, taken.resetMs);
    },
    async look(rule, name) {
      const key = hashed(rule, name);
      const known: Window = own.open(key) ?? { points: 0, resetMs: rule.windowMs };
      const shared = known.points >= rule.maxRequests ? null : await lookTogether(key);
      const found = shared === null ? known : fuller(known, shared);
      return stateOf(rule, found.points + 1, found.resetMs);
    },
  };
}

/** `points`: taken, with what is asked for. The database rounds a window's end to whole ms. */
function stateOf(rule: QuotaRule, points: number, resetMs: number): QuotaState {
  const { windowMs, maxRequests: limit } = rule;
  const remaining = Math.max(0, limit - points);
  return { allowed: points <= limit, limit, remaining, resetMs: Math.min(resetMs, windowMs) };
}
