// Schedules in an audit: each stream is folded, and a job that names a run has to be the one that was started for it.
import { type Fault, fault } from '#src/domain/audit/finding.ts';
import type { JobCompleted, JobStarted } from '#src/domain/events/job.ts';
import { type ScheduleEvent, STREAM } from '#src/domain/events.ts';
import { boughtNothing } from '#src/domain/payment/ledger.ts';
import { absentSchedule, evolveSchedule, type Schedule } from '#src/domain/schedule/state.ts';
import type { StreamStates } from './stream-states.ts';

const impossibleText = ({ type }: ScheduleEvent, { status }: Schedule): string =>
  `The event ${type} cannot follow: the state of the schedule is "${status}".`;

const runName = (jobId: string): string => `run ${jobId}`;

export function auditSchedules(states: StreamStates) {
  return {
    take(stream: string, event: ScheduleEvent): readonly Fault[] {
      const before = states.get('schedule', stream) ?? absentSchedule;
      const after = evolveSchedule(before, event);
      states.put('schedule', stream, after);
      if (event.type === 'RunSkipped' && before.status !== 'absent') {
        const { plannedJobId } = event.data;
        const ticket = before.tickets.find(({ jobId }) => jobId === plannedJobId);
        if (ticket?.status === 'started') states.put('skippedRun', runName(ticket.jobId), ticket);
      }
      return after === before ? [fault('schedule_event_impossible', impossibleText(event, before))] : [];
    },
    /** Contradictions between a job's start and the schedule that it names. */
    started({ jobId, paymentStream, schedule }: JobStarted): readonly Fault[] {
      if (schedule === null) return [];
      const known = states.get('schedule', STREAM.schedule(schedule.id));
      const late = states.get('skippedRun', runName(jobId));
      const ticket =
        known === null || known.status === 'absent'
          ? undefined
          : (known.tickets.find((one) => one.jobId === jobId) ?? late);
      if (late !== null) states.put('lateJob', runName(jobId), true);
      const isIts =
        ticket?.status === 'started' &&
        ticket.run === schedule.run &&
        ticket.dueAt === schedule.dueAt &&
        ticket.paymentStream === paymentStream;
      return isIts
        ? []
        : [fault('schedule_mismatch', `Job ${jobId} names a run that its schedule did not start with it.`)];
    },
    /** A run may be skipped while its job is being started by a process that is late: its request is not sent then. */
    completed({ jobId, errorCategory }: JobCompleted): readonly Fault[] {
      if (boughtNothing(errorCategory) || states.get('lateJob', runName(jobId)) === null) return [];
      return [
        fault('schedule_mismatch', `Job ${jobId} was executed, although its schedule has skipped its run.`),
      ];
    },
  };
}
