// Who counts how often: all processes together where they share a Postgres, else this one in its memory.
import { memoryQuota } from '#src/adapters/quota/memory.ts';
import { postgresQuota } from '#src/adapters/quota/postgres.ts';
import type { Quota } from '#src/ports/quota.ts';
import type { AppParts } from './app.ts';

export type QuotaParts = Pick<AppParts, 'stores' | 'keyedHash' | 'clock' | 'logger' | 'ending'>;

/** A shared one takes up to 2 s to find its Postgres; embedded rows are not written to with every call. */
export async function wireQuota({ stores, ...parts }: QuotaParts): Promise<Quota> {
  const { readStore } = stores;
  return readStore.driver === 'postgres'
    ? postgresQuota({ ...parts, open: () => readStore.shared() })
    : memoryQuota();
}
