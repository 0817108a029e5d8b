import type { DomainEvent } from '#src/domain/events.ts';
import type { JobCompleted, JobStarted } from '#src/domain/job/events.ts';
import type { MinuteRow, RunningRow, TotalsRow } from './table.ts';

export type MonitoringChange =
  | {
      readonly table: 'monitoring_minutes';
      readonly key: string;
      apply(row: MinuteRow | null): MinuteRow | null;
    }
  | {
      readonly table: 'monitoring_totals';
      readonly key: string;
      apply(row: TotalsRow | null): TotalsRow | null;
    }
  | {
      readonly table: 'running_jobs';
      readonly key: string;
      apply(row: RunningRow | null): RunningRow | null;
    };

export function projectMonitoring(event: DomainEvent): readonly MonitoringChange[] {
  switch (event.type) {
    case 'JobStarted': {
      const running = runningRow(event.data);
      return [
        { table: 'running_jobs', key: running.jobId, apply: () => running },
        total(event.data.startedAt, (row) => ({ ...row, started: row.started + 1 })),
      ];
    }
    case 'AttemptMade':
      return [total(event.data.endedAt, (row) => row)];
    case 'JobCompleted': {
      const { jobId, status, completedAt } = event.data;
      return [
        { table: 'running_jobs', key: jobId, apply: () => null },
        total(completedAt, (row) => ({ ...row, [status]: row[status] + 1 })),
        minuteOf(completedAt, status),
      ];
    }
    default:
      return [];
  }
}

function total(at: string, change: (row: TotalsRow) => TotalsRow): MonitoringChange {
  return {
    table: 'monitoring_totals',
    key: 'all',
    apply: (row) => {
      const before = row ?? { id: 'all', started: 0, succeeded: 0, failed: 0, lastUpdatedAt: at };
      // Clocks differ between machines: the newest time ever told stays.
      return { ...change(before), lastUpdatedAt: at > before.lastUpdatedAt ? at : before.lastUpdatedAt };
    },
  };
}

function minuteOf(completedAt: string, status: JobCompleted['status']): MonitoringChange {
  const minute = completedAt.slice(0, 16);
  return {
    table: 'monitoring_minutes',
    key: minute,
    apply: (row) => {
      const before = row ?? { minute, succeeded: 0, failed: 0 };
      return { ...before, [status]: before[status] + 1 };
    },
  };
}

function runningRow({ jobId, startedAt, leaseMs, owner }: JobStarted): RunningRow {
  const lease = Math.min(leaseMs, Number.MAX_SAFE_INTEGER);
  const ends = Date.parse(startedAt) + lease;
  // A start that names no real day has no lease to keep: it is overdue at once.
  const leaseEndsAt = Number.isNaN(ends) ? 0 : Math.min(ends, Number.MAX_SAFE_INTEGER);
  return { jobId, startedAt, leaseMs: lease, leaseEndsAt, owner };
}
