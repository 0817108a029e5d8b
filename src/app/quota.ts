import { memoryQuota } from '#src/adapters/quota/memory.ts';
import { postgresQuota } from '#src/adapters/quota/postgres.ts';
import type { Quota } from '#src/ports/quota.ts';
import type { AppParts } from './app.ts';

export type QuotaParts = Pick<AppParts, 'stores' | 'keyedHash' | 'logger' | 'ending'>;

/** Shared by all processes with one Postgres (waits up to 2 s for it), otherwise in the memory of this process. */
export async function wireQuota({ stores, ...parts }: QuotaParts): Promise<Quota> {
  const { readStore } = stores;
  return readStore.driver === 'postgres'
    ? postgresQuota({ ...parts, open: () => readStore.shared() })
    : memoryQuota();
}
