import { memoryQuota } from '#src/adapters/quota/memory.ts';
import { postgresQuota } from '#src/adapters/quota/postgres.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Quota } from '#src/ports/quota.ts';
import type { KeyedHash } from '#src/ports/signer.ts';
import type { Stores } from './stores.ts';

export type QuotaParts = {
  readonly stores: Pick<Stores, 'readStore'>;
  readonly keyedHash: KeyedHash;
  readonly logger: Logger;
  readonly ending: AbortSignal;
};

/** Shared by all processes with one Postgres (waits up to 2 s for it), otherwise in the memory of this process. */
export async function wireQuota({ stores, ...parts }: QuotaParts): Promise<Quota> {
  const { readStore } = stores;
  return readStore.driver === 'postgres'
    ? postgresQuota({ ...parts, open: () => readStore.shared() })
    : memoryQuota();
}
