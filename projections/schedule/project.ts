import type { RunFunded, RunSkipped, ScheduleDefined } from '#src/domain/events/schedule.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import { type ReceiptPayload, runOf } from '#src/domain/receipt/payload.ts';
import type { RowChange } from '#src/lib/row-change.ts';
import type { ScheduleRow, ScheduleRunRow } from './table.ts';

export type ScheduleChange = RowChange<'schedules', ScheduleRow> | RowChange<'schedule_runs', ScheduleRunRow>;

/** `payload`: of the receipt that the event contains; null: none, or of an unknown version. */
export function projectSchedule(
  event: DomainEvent,
  { payload }: { readonly payload: ReceiptPayload | null },
): readonly ScheduleChange[] {
  switch (event.type) {
    case 'ScheduleDefined':
      return [{ table: 'schedules', key: event.data.scheduleId, apply: (row) => row ?? defined(event.data) }];
    case 'RunFunded':
      return [
        ofSchedule(event.data.scheduleId, (row) => ({ ...row, ...next(event.data), status: 'active' })),
        { table: 'schedule_runs', key: event.data.jobId, apply: (row) => row ?? funded(event.data) },
      ];
    case 'RunStarted': {
      const { jobId, startedAt } = event.data;
      return [ofRun(jobId, (row) => ({ ...row, state: 'started', startedAt }))];
    }
    case 'RunSkipped':
      return skipped(event.data);
    case 'SchedulePaused':
      return [ofSchedule(event.data.scheduleId, (row) => ({ ...row, status: 'paused' }))];
    case 'ScheduleCancelled':
      return [
        ofSchedule(event.data.scheduleId, (row) => ({
          ...row,
          status: 'cancelled',
          nextRun: null,
          nextDueAt: null,
        })),
      ];
    case 'JobStarted': {
      const { schedule, jobId, startedAt } = event.data;
      if (schedule === null) return [];
      const { lateByMs } = schedule;
      return [ofRun(jobId, (row) => ({ ...row, state: 'running', startedAt, lateByMs }))];
    }
    case 'ReceiptSigned': {
      if (payload === null || runOf(payload) === null) return [];
      const { jobId, receiptId } = event.data;
      return [ofRun(jobId, (row) => ({ ...row, state: 'executed', receiptId }))];
    }
    default:
      return [];
  }
}

const ofSchedule = (key: string, apply: (row: ScheduleRow) => ScheduleRow): ScheduleChange => ({
  table: 'schedules',
  key,
  apply: (row) => row && apply(row),
});

const ofRun = (key: string, apply: (row: ScheduleRunRow) => ScheduleRunRow): ScheduleChange => ({
  table: 'schedule_runs',
  key,
  apply: (row) => row && apply(row),
});

const next = ({ next }: Pick<RunFunded | RunSkipped | ScheduleDefined, 'next'>) => ({
  nextRun: next?.run ?? null,
  nextDueAt: next?.dueAt ?? null,
});

function defined(data: ScheduleDefined): ScheduleRow {
  const { scheduleId, schedule, catchUpSeconds, definedAt, endsAt } = data;
  return { scheduleId, status: 'active', schedule, catchUpSeconds, definedAt, endsAt, ...next(data) };
}

const NOT_STARTED = { reason: null, startedAt: null, lateByMs: null, receiptId: null } as const;

function funded({ scheduleId, run, jobId, client, dueAt }: RunFunded): ScheduleRunRow {
  return { id: jobId, scheduleId, run, jobId, client, dueAt, state: 'funded', ...NOT_STARTED };
}

function skipped(data: RunSkipped): readonly ScheduleChange[] {
  const { scheduleId, run, dueAt, plannedJobId, reason, movedTo } = data;
  const changes = [
    ofSchedule(scheduleId, (row) => (row.status === 'cancelled' ? row : { ...row, ...next(data) })),
  ];
  if (plannedJobId !== null && movedTo === null)
    return [...changes, ofRun(plannedJobId, (row) => ({ ...row, state: 'skipped', reason }))];
  const id = `${scheduleId}.${run}`;
  const own = { id, scheduleId, run, jobId: null, client: null, dueAt, ...NOT_STARTED, reason };
  const moves =
    plannedJobId === null || movedTo === null ? [] : [ofRun(plannedJobId, (row) => ({ ...row, ...movedTo }))];
  return [
    ...changes,
    ...moves,
    { table: 'schedule_runs', key: id, apply: (row) => row ?? { ...own, state: 'skipped' } },
  ];
}
