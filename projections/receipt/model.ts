import { sql } from 'drizzle-orm';
import { projectReceipt } from './project.ts';
import { receiptQueries } from './query.ts';
import { receipts, revokedKeys } from './table.ts';

export const receipt = {
  version: 2,
  tables: [receipts, revokedKeys],
  project: projectReceipt,
  queries: receiptQueries,
  needs: { find: 'rows' },
  retained: { table: 'receipts', time: 'signed_at', ended: sql`true`, horizon: 'receipts' },
} as const;
