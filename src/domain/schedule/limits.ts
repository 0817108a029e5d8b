// The limits of paid schedules: a table of its own, since documents show it only where schedules are on.
import type { Limit } from '../limits.ts';

const INVALID = '400 invalid_schedule.';

export const SCHEDULE_LIMITS = {
  catchUpSeconds: {
    min: 0,
    max: 3600,
    default: 300,
    unit: 's',
    meaning: 'How late a run may start.',
    whenExceeded: '400 invalid_request.',
  },
  ticketsPerPayer: {
    max: 100,
    unit: 'runs',
    meaning: 'Paid runs of one payer that are not over.',
    whenExceeded: '429 too_many_in_flight.',
  },
  ticketsPerSchedule: {
    max: 100,
    unit: 'runs',
    meaning: 'Paid runs of one schedule that are not over, by any payer.',
    whenExceeded: '429 too_many_in_flight.',
  },
  schedulesPerPayer: {
    max: 50,
    unit: 'schedules a day',
    meaning: 'New schedules of one payer.',
    whenExceeded: '429 rate_limited.',
  },
  schedulesPerClient: {
    max: 200,
    unit: 'schedules a day',
    meaning: 'New schedules of one client address.',
    whenExceeded: '429 rate_limited.',
  },
  requestBytes: {
    max: 16_384,
    unit: 'bytes',
    meaning: 'The webhook of a schedule as JSON, which is stored until its last run.',
    whenExceeded: '400 invalid_request.',
  },
  ticketsPerClient: {
    max: 10,
    unit: 'runs',
    meaning: 'Runs of one client address that are not over, where calls are free.',
    whenExceeded: '429 too_many_in_flight.',
  },
  runsPerSchedule: {
    max: 1000,
    unit: 'runs',
    meaning: 'Runs of one schedule, skipped ones included.',
    whenExceeded: INVALID,
  },
  unfundedInARow: {
    max: 3,
    unit: 'runs',
    meaning: 'Runs without a payment, one after another.',
    whenExceeded: 'The schedule is paused until another run is paid for.',
  },
} as const satisfies Readonly<Record<string, Limit>>;

export const RUN_TIMES = {
  /** A payment for a run lives this much longer than the run may start late: for its settlement. */
  authorizationMarginSeconds: 120,
  /** A payment is taken if it lives at least this long after its run is due. */
  authorizationLeastSeconds: 60,
  /** A run starts at the first look after it is due: no later than this after its catch-up has ended. */
  lookMs: 10_000,
  /** No job of a run starts later than this after its catch-up has ended: its payment is settled first. */
  startGraceMs: 30_000,
  /** A run that may still be starting elsewhere is ended this long after its catch-up. */
  endGraceMs: 120_000,
  /** The clocks of the process and of the store may differ by this. */
  clockToleranceMs: 5000,
  /** After a larger difference they have to agree for so long. */
  clockAgreesMs: 60_000,
} as const;
