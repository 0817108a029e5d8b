// Who counts how often: all processes together where they share a Postgres, else this one in its memory.
import { memoryQuota } from '../adapters/quota/memory.ts';
import { postgresQuota } from '../adapters/quota/postgres.ts';
import type { Quota } from '../ports/quota.ts';
import type { AppParts } from './app.ts';

export type QuotaParts = Pick<AppParts, 'stores' | 'keyedHash' | 'clock' | 'logger' | 'ending'>;

/** A shared one takes up to 2 s to find its Postgres; embedded rows are not written to with every call. */
export async function wireQuota({ stores, ...parts }: QuotaParts): Promise<Quota> {
  const { readStore } = stores;
  return readStore.driver === 'postgres'
    ? postgresQuota({ ...parts, open: () => readStore.open() })
    : memoryQuota();
}
