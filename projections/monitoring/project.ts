import type { JobStarted } from '#src/domain/events/job.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import type { ReceiptPayload } from '#src/domain/receipt/payload.ts';
import type { RowChange } from '#src/lib/row-change.ts';
import {
  DURATION_BOUNDS_MS,
  type HourRow,
  type MinuteRow,
  type RunningRow,
  type TotalsRow,
} from './table.ts';

export type MonitoringChange =
  | RowChange<'monitoring_minutes', MinuteRow>
  | RowChange<'monitoring_hours', HourRow>
  | RowChange<'monitoring_totals', TotalsRow>
  | RowChange<'running_jobs', RunningRow>;

/** The fields that a minute and an hour share. */
type Finished = Omit<MinuteRow, 'minute'>;

const NONE: Finished = { succeeded: 0, failed: 0, durations: null };

/** `payload`: of the receipt that this very event contains. */
export function projectMonitoring(
  event: DomainEvent,
  { payload }: { readonly payload: ReceiptPayload | null },
): readonly MonitoringChange[] {
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
        ...finishedAt(completedAt, (row) => ({ ...row, [status]: row[status] + 1 })),
      ];
    }
    case 'ReceiptSigned': {
      const { signedAt } = event.data;
      const durationMs = payload === null ? null : durationOf(payload, signedAt);
      return durationMs === null ? [] : finishedAt(signedAt, (row) => took(row, durationMs));
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
      // Clocks differ between machines: the newest time in any event is kept.
      return { ...change(before), lastUpdatedAt: at > before.lastUpdatedAt ? at : before.lastUpdatedAt };
    },
  };
}

/** The minute and its hour change alike: an hour is the sum of its minutes. */
function finishedAt(at: string, change: (row: Finished) => Finished): readonly MonitoringChange[] {
  const minute = at.slice(0, 16);
  const hour = at.slice(0, 13);
  return [
    {
      table: 'monitoring_minutes',
      key: minute,
      apply: (row) => ({ minute, ...change(row ?? NONE) }),
    },
    { table: 'monitoring_hours', key: hour, apply: (row) => ({ hour, ...change(row ?? NONE) }) },
  ];
}

function took(row: Finished, durationMs: number): Finished {
  const found = DURATION_BOUNDS_MS.findIndex((bound) => durationMs <= bound);
  const at = found === -1 ? DURATION_BOUNDS_MS.length : found;
  const durations = [...(row.durations ?? [])];
  while (durations.length <= at) durations.push(0);
  durations[at] = (durations[at] ?? 0) + 1;
  return { ...row, durations };
}

/**
 * How long the execution took, ms: from its first attempt, which follows its start at once, to its receipt, which is
 * signed as it completes. No other closing event contains the start. Null: unknown, or the job was closed later by
 * recovery.
 */
function durationOf({ outcome, attempts }: ReceiptPayload, signedAt: string): number | null {
  const { errorCategory } = outcome;
  if (errorCategory === 'interrupted_unknown' || errorCategory === 'not_executed') return null;
  const durationMs = Date.parse(signedAt) - Date.parse(attempts[0]?.startedAt ?? '');
  return durationMs >= 0 ? durationMs : null;
}

function runningRow({ jobId, startedAt, leaseMs }: JobStarted): RunningRow {
  const ends = Date.parse(startedAt) + leaseMs;
  // A start that names no real day has no lease to keep: it is overdue at once.
  const leaseEndsAt = Number.isNaN(ends) ? 0 : Math.min(ends, Number.MAX_SAFE_INTEGER);
  return { jobId, startedAt, leaseEndsAt };
}
