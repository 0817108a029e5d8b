import { projectTrust } from './project.ts';
import { trustQueries } from './query.ts';
import { trustMinutes, trustOpenPayments, trustTotals } from './table.ts';

export const trust = {
  version: 3,
  tables: [trustTotals, trustMinutes, trustOpenPayments],
  project: projectTrust,
  queries: trustQueries,
  needs: { payments: 'rows', receipts: 'whole' },
} as const;
