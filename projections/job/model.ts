import { sql } from 'drizzle-orm';
import { projectJob } from './project.ts';
import { jobQueries } from './query.ts';
import { jobs } from './table.ts';

export const job = {
  version: 2,
  tables: [jobs],
  project: projectJob,
  queries: jobQueries,
  needs: { find: 'rows', findForVerification: 'rows' },
  retained: { table: 'jobs', time: 'updated_at', ended: sql`"status" <> 'running'`, horizon: 'jobs' },
} as const;
