// Quotas as several processes have them: each with a pool of its own over one PostgreSQL, and what it told its operator.
import { type Db, type PostgresQuotaOptions, postgresQuota } from '#src/adapters/quota/postgres.ts';
import { postgresReadStore } from '#src/adapters/read-store/postgres.ts';
import { hmacKeyedHash } from '#src/adapters/signing/hash.ts';
import type { Quota } from '#src/ports/quota.ts';

export type SharedQuota = Quota & {
  /** What it logged, in order. */
  readonly told: readonly string[];
  readonly open: () => Promise<Db>;
  end(): Promise<void>;
};

export type Patience = Pick<PostgresQuotaOptions, 'limitMs' | 'retryMs' | 'sweepMs'>;

/** So much that only a test that hangs meets it. */
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

export async function quotaOver(open: () => Promise<Db>, patience: Patience): Promise<SharedQuota> {
  const told: string[] = [];
  const ending = new AbortController();
  const quota = await postgresQuota({
    open,
    keyedHash: hmacKeyedHash(new Uint8Array(32).fill(7)),
    logger: {
      info: (message) => told.push(message),
      warn: (message) => told.push(message),
      error: (message) => told.push(`error: ${message}`),
    },
    ending: ending.signal,
    ...patience,
  });
  return { ...quota, told, open, end: async () => ending.abort() };
}
