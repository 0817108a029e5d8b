import { sql } from 'drizzle-orm';
import { projectProof } from './project.ts';
import { proofQueries } from './query.ts';
import { proofs } from './table.ts';

export const proof = {
  version: 1,
  tables: [proofs],
  project: projectProof,
  queries: proofQueries,
  needs: { find: 'rows', recent: 'whole', recentFailures: 'whole' },
  retained: { table: 'proofs', time: 'updated_at', ended: sql`"status" <> 'running'`, horizon: 'jobs' },
} as const;
