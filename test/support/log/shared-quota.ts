// Quotas of several processes: each has its own pool on one PostgreSQL, and records its log messages.
import { type PostgresQuotaOptions, postgresQuota, type QuotaDb } from '#src/adapters/quota/postgres.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { hmacKeyedHash } from '#src/adapters/signing/hash.ts';
import type { Quota } from '#src/ports/quota.ts';
import { loggerOver } from '#src/usecases/process/condition.ts';

export type SharedQuota = Quota & {
  /** Log messages, in order. */
  readonly messages: readonly string[];
  readonly open: () => Promise<QuotaDb>;
  end(): Promise<void>;
};

export type Patience = Pick<PostgresQuotaOptions, 'limitMs' | 'retryMs' | 'sweepMs'>;

/** Large enough that only a test that hangs reaches it. */
const PATIENT: Patience = { limitMs: 30_000 };

/** `url`: postgres://… */
export async function sharedQuota(url: string, patience: Patience = PATIENT): Promise<SharedQuota> {
  const store = postgresReadStore({ url, connections: 4 });
  const quota = await quotaOver(() => store.shared(), patience);
  return {
    ...quota,
    async end() {
      await quota.end();
      await store.close();
    },
  };
}

export async function quotaOver(open: () => Promise<QuotaDb>, patience: Patience): Promise<SharedQuota> {
  const messages: string[] = [];
  const ending = new AbortController();
  const quota = await postgresQuota({
    open,
    keyedHash: hmacKeyedHash(new Uint8Array(32).fill(7)),
    logger: loggerOver(
      {
        info: (message) => messages.push(message),
        warn: (message) => messages.push(message),
        error: (message) => messages.push(`error: ${message}`),
        bug: (message) => messages.push(`bug: ${message}`),
      },
      { now: () => 0 },
    ),
    ending: ending.signal,
    ...patience,
  });
  return { ...quota, messages, open, end: async () => ending.abort() };
}
