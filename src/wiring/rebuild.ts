// A rebuild for an operator, beside whatever service reads the rows meanwhile.
import { join } from 'node:path';
import type { RebuildDeps, RebuildOptions, RebuildResult } from '#projections/rebuild.ts';
import { rebuild } from '#projections/rebuild.ts';
import type { Db } from '#projections/rows.ts';
import { pgliteRebuildStore } from '../adapters/read-store/pglite-rebuild.ts';
import { postgresRebuildStore } from '../adapters/read-store/postgres-rebuild.ts';
import { ed25519VerifyBeside } from '../adapters/signing/ed25519-pool.ts';
import type { Config } from '../config.ts';
import type { Logger } from '../ports/logger.ts';
import type { RebuildStore } from '../ports/rebuild-store.ts';
import { receiptJudge } from '../usecases/judge-receipt.ts';
import { verifierPrimitives } from './keys.ts';
import { openOperatorLog } from './operator-log.ts';

/** Throws as `rebuild` and `openOperatorLog` do, and `ReadStoreInUse` where a service has the embedded read models. */
export async function rebuildReadModels(config: Config, options: RebuildOptions): Promise<RebuildResult> {
  // The log first: where there is none, nothing is made.
  const { log, clock, logger } = await openOperatorLog(config);
  try {
    const store = rebuildStoreOf(config, logger);
    try {
      return await rebuild({ log, store, clock, judgeReceipt: rebuildJudge(log) }, options);
    } finally {
      await store.close();
    }
  } finally {
    await log.close();
  }
}

function rebuildStoreOf({ dataDir, databaseUrl }: Config, logger: Logger): RebuildStore<Db> {
  return databaseUrl === null
    ? pgliteRebuildStore({ directory: join(dataDir, 'read-models'), logger })
    : postgresRebuildStore({ url: databaseUrl });
}

const rebuildJudge = (log: Parameters<typeof receiptJudge>[0]['log']): RebuildDeps['judgeReceipt'] =>
  receiptJudge({ log, primitives: { ...verifierPrimitives, ed25519Verify: ed25519VerifyBeside } });
