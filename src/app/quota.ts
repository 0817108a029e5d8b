// Who counts how often: all processes together where they share a Postgres, else this one in its memory.
import { memoryQuota } from '#src/adapters/quota/memory.ts';
import { postgresQuota } from '#src/adapters/quota/postgres.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Quota } from '#src/ports/quota.ts';
import type { KeyedHash } from '#src/ports/signer.ts';
import type { Stores } from './stores.ts';

export type QuotaParts = {
  readonly stores: Pick<Stores, 'readStore'>;
  readonly keyedHash: KeyedHash;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly ending: AbortSignal;
};

/** A shared one takes up to 2 s to find its Postgres; embedded rows are not written to with every call. */
export async function wireQuota({ stores, ...parts }: QuotaParts): Promise<Quota> {
  const { readStore } = stores;
  return readStore.driver === 'postgres'
    ? postgresQuota({ ...parts, open: () => readStore.open() })
    : memoryQuota();
}
