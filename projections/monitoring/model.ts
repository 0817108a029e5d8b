import { projectMonitoring } from './project.ts';
import { monitoringQueries } from './query.ts';
import { monitoringHours, monitoringMinutes, monitoringTotals, runningJobs } from './table.ts';

export const monitoring = {
  version: 3,
  tables: [monitoringMinutes, monitoringHours, monitoringTotals, runningJobs],
  project: projectMonitoring,
  queries: monitoringQueries,
  needs: { summary: 'whole', series: 'whole', recoveryCandidates: 'rows' },
} as const;
