// When an event was made, by the relay's own word: the time of storage is nobody's promise.
import type { DomainEvent } from '../events.ts';

/** Unix ms. */
export const toldAt = (event: DomainEvent): number => Date.parse(instantOf(event));

function instantOf(event: DomainEvent): string {
  switch (event.type) {
    case 'JobStarted':
      return event.data.startedAt;
    case 'AttemptMade':
      return event.data.endedAt;
    case 'JobCompleted':
      return event.data.completedAt;
    case 'ReceiptSigned':
    case 'CheckpointSigned':
      return event.data.signedAt;
    case 'PaymentReserved':
      return event.data.reservedAt;
    case 'PaymentSettled':
      return event.data.settledAt;
    case 'PaymentRejected':
      return event.data.rejectedAt;
    case 'PaymentReleased':
    case 'KeyReleased':
      return event.data.releasedAt;
    case 'SettlementUnknown':
      return event.data.unknownAt;
    case 'SettlementRetried':
      return event.data.retriedAt;
    case 'KeyClaimed':
      return event.data.claimedAt;
    case 'DecisionRecorded':
      return event.data.createdAt;
    case 'KeyActivated':
      return event.data.activatedAt;
    case 'KeyRetired':
      return event.data.retiredAt;
    default:
      return event satisfies never;
  }
}
