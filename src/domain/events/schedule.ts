// Events of a schedule's stream, `schedule-<scheduleId>`. Starts, skips and the cancellation are decided at the revision
// read, so that of any two of them one comes first.
import { Type } from '@sinclair/typebox';
import {
  declareEvent,
  declareVersions,
  type EventData,
  Hex,
  Instant,
  Mode,
  Nullable,
  oneOf,
  strict,
  Text,
} from '../event-fields.ts';

const Run = Type.Integer({ minimum: 1 });
/** The first run without a payment, as its due time is computed now; null: there is none any more. */
const NextRun = Nullable(Type.Object({ run: Run, dueAt: Instant }, strict));
/** As it was ordered, the zone's name in its canonical case. */
const Plan = Type.Union([
  Type.Object({ type: Type.Literal('once'), runAt: Text }, strict),
  Type.Object({ type: Type.Literal('daily'), timeOfDay: Text, timezone: Text }, strict),
  Type.Object(
    {
      type: Type.Literal('weekly'),
      daysOfWeek: Type.Array(
        oneOf('monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'),
      ),
      timeOfDay: Text,
      timezone: Text,
    },
    strict,
  ),
  Type.Object({ type: Type.Literal('interval'), everyMinutes: Type.Integer(), startAt: Text }, strict),
]);
/** Names a text of the vault, which is deleted when it is used or dropped. Earlier releases stored its ciphertext here. */
const Sealed = Text;

export const ScheduleDefined = declareEvent('schedule', 'definedAt', {
  scheduleId: Text,
  mode: Mode,
  schedule: Plan,
  catchUpSeconds: Type.Integer({ minimum: 0 }),
  /** Keyed hash of the request, the schedule and the catch-up. */
  fingerprint: Hex,
  /** SHA-256 of the token that cancels it. */
  cancelHash: Hex,
  /** The request. */
  sealed: Sealed,
  /** No run is due later than this. */
  endsAt: Instant,
  next: NextRun,
  definedAt: Instant,
});
export type ScheduleDefined = EventData<typeof ScheduleDefined>;

const funded = {
  scheduleId: Text,
  run: Run,
  jobId: Text,
  /** An instant: it does not change any more. */
  dueAt: Instant,
  /** null: calls are free. */
  paymentStream: Nullable(Text),
  /** Unix seconds until which the payment can be settled; null: there is none. */
  validBefore: Nullable(Type.Integer({ minimum: 0 })),
  /** Keyed hash of the payer, or of the client address where calls are free. */
  holder: Hex,
  /** The signed authorization; null: there is none. */
  sealed: Nullable(Sealed),
  next: NextRun,
  fundedAt: Instant,
};

/** `client`: keyed hash of the client address that bought it; null: it was not recorded. */
export const RunFunded = declareVersions(
  'schedule',
  'fundedAt',
  {
    1: funded,
    2: { ...funded, client: Nullable(Hex) },
  },
  { 1: (recorded) => ({ ...recorded, client: null }) },
);
export type RunFunded = EventData<typeof RunFunded>;

/** From here on the run is executed, by whichever process. */
export const RunStarted = declareEvent('schedule', 'startedAt', {
  scheduleId: Text,
  run: Run,
  jobId: Text,
  owner: Text,
  startedAt: Instant,
});

/** `reason`: a code of this service, or the facilitator's. `movedTo`: the run that its payment is used for; null: none. */
export const RunSkipped = declareEvent('schedule', 'skippedAt', {
  scheduleId: Text,
  run: Run,
  dueAt: Instant,
  /** Of the job that it would have been; null: the run had no payment. */
  plannedJobId: Nullable(Text),
  reason: Text,
  movedTo: NextRun,
  next: NextRun,
  skippedAt: Instant,
});
export type RunSkipped = EventData<typeof RunSkipped>;

/** Too many runs in a row had no payment. The next payment continues the schedule. */
export const SchedulePaused = declareEvent('schedule', 'pausedAt', { scheduleId: Text, pausedAt: Instant });

export const ScheduleCancelled = declareEvent('schedule', 'cancelledAt', {
  scheduleId: Text,
  cancelledAt: Instant,
});
