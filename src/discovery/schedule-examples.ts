// Examples of paid schedules, for documents and challenges.
import type { ScheduleRequest } from '#src/domain/schedule/plan.ts';

const SCHEDULE = 'sch_7tq3c0x2h8b1m5v9k4n6p0r2s1';

export const SCHEDULE_REQUEST_EXAMPLE: ScheduleRequest = {
  webhook: { url: 'https://example.com/hook', method: 'POST', body: { event: 'daily.report' } },
  schedule: { type: 'daily', timeOfDay: '09:00', timezone: 'Europe/Berlin' },
  catchUpSeconds: 300,
};

export const SCHEDULE_ANSWER_EXAMPLE = {
  scheduleId: SCHEDULE,
  cancelToken: 'q1Zr8t5cXc2mF0bV7yJ3kP9sLdW6uHnE4aGoTiRxQvA',
  status: 'active',
  run: { n: 1, dueAt: '2026-01-03T08:00:00.000Z' },
  schedule: SCHEDULE_REQUEST_EXAMPLE.schedule,
  nextRuns: [
    { n: 1, dueAt: '2026-01-03T08:00:00.000Z', state: 'funded' },
    { n: 2, dueAt: '2026-01-04T08:00:00.000Z', state: 'unfunded' },
  ],
  fundedRuns: 1,
};
