import { sql } from 'drizzle-orm';
import { projectDecision } from './project.ts';
import { decisionQueries } from './query.ts';
import { decisions } from './table.ts';

export const decision = {
  version: 1,
  tables: [decisions],
  project: projectDecision,
  queries: decisionQueries,
  needs: { find: 'rows', recent: 'whole' },
  retained: { table: 'decisions', time: 'created_at', ended: sql`true`, horizon: 'receipts' },
} as const;
