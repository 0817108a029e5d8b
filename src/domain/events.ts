// The catalogue: every event type that this service writes, and how its streams are named. Each type is declared once,
// with its versions, its stream, its claimed time and its upcasters; test/fixtures keeps one event of each version.

import { type EventData, type StreamKind, writtenAs } from './event-fields.ts';
import { DecisionRecorded } from './events/decision.ts';
import { AttemptMade, JobCompleted, JobStarted, ReceiptSigned } from './events/job.ts';
import {
  ChainReconciled,
  IdempotencyKeyClaimed,
  IdempotencyKeyReleased,
  PaymentDeferred,
  PaymentMissing,
  PaymentRejected,
  PaymentReleased,
  PaymentReserved,
  PaymentSettled,
  SettlementCorrected,
  SettlementRetried,
  SettlementUnknown,
} from './events/payment.ts';
import { PaymentRefunded, RefundBegun, RefundCancelled, RefundClaimed } from './events/refund.ts';
import {
  RunFunded,
  RunSkipped,
  RunStarted,
  ScheduleCancelled,
  ScheduleDefined,
  SchedulePaused,
} from './events/schedule.ts';
import {
  CheckpointCosigned,
  CheckpointSigned,
  SigningKeyActivated,
  SigningKeyRetired,
} from './events/signing-keys.ts';

export const EVENTS = {
  JobStarted,
  AttemptMade,
  JobCompleted,
  ReceiptSigned,
  PaymentReserved,
  PaymentSettled,
  PaymentRejected,
  PaymentReleased,
  SettlementUnknown,
  SettlementRetried,
  IdempotencyKeyClaimed,
  IdempotencyKeyReleased,
  DecisionRecorded,
  SigningKeyActivated,
  SigningKeyRetired,
  CheckpointSigned,
  PaymentRefunded,
  PaymentMissing,
  ChainReconciled,
  RefundBegun,
  RefundCancelled,
  RefundClaimed,
  SettlementCorrected,
  CheckpointCosigned,
  PaymentDeferred,
  ScheduleDefined,
  RunFunded,
  RunStarted,
  RunSkipped,
  SchedulePaused,
  ScheduleCancelled,
} as const;

type Catalogue = typeof EVENTS;
export type EventType = keyof Catalogue;
/** An event in the version that this release writes. */
export type EventOf<T extends EventType> = {
  readonly [K in T]: { readonly type: K; readonly data: EventData<Catalogue[K]> };
}[T];
export type DomainEvent = EventOf<EventType>;
/** What an event states: its data without the version, which the catalogue adds. */
export type EventFacts<T extends EventType> = Omit<EventOf<T>['data'], 'v'> & { readonly v?: never };

type InStream<S extends StreamKind> = EventOf<
  { [T in EventType]: Catalogue[T]['stream'] extends S ? T : never }[EventType]
>;
export type JobEvent = InStream<'job'>;
export type PaymentEvent = InStream<'payment'>;
export type ClaimEvent = InStream<'claim'>;
export type KeyEvent = InStream<'keys'>;
export type ScheduleEvent = InStream<'schedule'>;

export const EVENT_TYPES = Object.keys(EVENTS) as readonly EventType[];
export const typesIn = (stream: StreamKind): readonly EventType[] =>
  EVENT_TYPES.filter((type) => EVENTS[type].stream === stream);

/** A new event, in the version of its type that is written. */
export function event<T extends EventType>(type: T, facts: EventFacts<T>): EventOf<T> {
  return { type, data: writtenAs(EVENTS[type], facts) } as unknown as EventOf<T>;
}

/** What a command decided: events to append, in their order. */
export type Events<E extends readonly DomainEvent[]> = { readonly kind: 'events'; readonly events: E };

const isOf =
  <E extends DomainEvent>(stream: StreamKind) =>
  (event: DomainEvent): event is E =>
    EVENTS[event.type].stream === stream;
export const isJobEvent = isOf<JobEvent>('job');
export const isPaymentEvent = isOf<PaymentEvent>('payment');
export const isClaimEvent = isOf<ClaimEvent>('claim');
export const isRefundEvent = isOf<InStream<'refund'>>('refund');
export const isKeyEvent = isOf<KeyEvent>('keys');
export const isScheduleEvent = isOf<ScheduleEvent>('schedule');

/** When the relay says that it happened: RFC 3339, UTC. The event log's own time of storage proves nothing. */
export function claimedTime({ type, data }: DomainEvent): string {
  const members: Readonly<Record<string, unknown>> = data;
  return String(members[EVENTS[type].time]);
}

export const STREAM = {
  job: (jobId: string) => `job-${jobId}`,
  decision: (decisionId: string) => `decision-${decisionId}`,
  /** `hash`: lower-case hex. */
  payment: (hash: string) => `payment-${hash}`,
  claim: (hash: string) => `claim-${hash}`,
  /** Of a payee on a network. CAIP-10, lower case: `eip155:8453:0x…` has no hyphen, at which names are split. */
  chain: (account: string) => `chain-${account}`,
  /** Of a transaction: `eip155:8453:0x…` has no hyphen, at which names are split. */
  refund: (id: string) => `refund-${id}`,
  schedule: (scheduleId: string) => `schedule-${scheduleId}`,
  keys: 'keys-relay',
  receiptLog: 'log-receipts',
  logWitnesses: 'log-witnesses',
} as const satisfies Record<StreamKind, unknown>;
