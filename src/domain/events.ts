// The catalogue: every event that this service ever writes, by type, and the names of their streams.
// A released version is frozen (test/fixtures keeps one of each); a new shape is a new `v` with an upcaster.
import type { Static, TObject } from '@sinclair/typebox';
import { CheckpointSigned, SigningKeyActivated, SigningKeyRetired } from '#src/domain/signing-keys/events.ts';
import { DecisionRecorded } from './decision/events.ts';
import { AttemptMade, JobCompleted, JobStarted, ReceiptSigned } from './job/events.ts';
import {
  IdempotencyKeyClaimed,
  IdempotencyKeyReleased,
  PaymentRejected,
  PaymentReleased,
  PaymentReserved,
  PaymentSettled,
  SettlementRetried,
  SettlementUnknown,
} from './payment/events.ts';

export const EVENT_SCHEMAS = {
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
} satisfies Record<string, TObject>;

export type EventType = keyof typeof EVENT_SCHEMAS;
export type EventOf<T extends EventType> = {
  readonly [K in T]: { readonly type: K; readonly data: Static<(typeof EVENT_SCHEMAS)[K]> };
}[T];
export type DomainEvent = EventOf<EventType>;
export type JobEvent = EventOf<'JobStarted' | 'AttemptMade' | 'JobCompleted' | 'ReceiptSigned'>;
export const PAYMENT_TYPES = [
  'PaymentReserved',
  'PaymentSettled',
  'PaymentRejected',
  'PaymentReleased',
  'SettlementUnknown',
  'SettlementRetried',
] as const satisfies readonly EventType[];
export type PaymentEvent = EventOf<(typeof PAYMENT_TYPES)[number]>;
export type ClaimEvent = EventOf<'IdempotencyKeyClaimed' | 'IdempotencyKeyReleased'>;
export const isPaymentEvent = (event: DomainEvent): event is PaymentEvent =>
  PAYMENT_TYPES.some((type) => type === event.type);
export type KeyEvent = EventOf<'SigningKeyActivated' | 'SigningKeyRetired'>;

export const STREAM = {
  job: (jobId: string) => `job-${jobId}`,
  decision: (decisionId: string) => `decision-${decisionId}`,
  /** `hash`: lower-case hex. */
  payment: (hash: string) => `payment-${hash}`,
  claim: (hash: string) => `claim-${hash}`,
  keys: 'keys-relay',
  receiptLog: 'log-receipts',
} as const;
