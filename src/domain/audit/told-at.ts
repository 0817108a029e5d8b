// When an event was made, by the relay's own word: the time of storage is nobody's promise.
import { type DomainEvent, isPaymentEvent } from '../events.ts';

/** Unix ms. */
const toldAt = (event: DomainEvent): number => Date.parse(instantOf(event));

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

/** The latest times that two streams tell, later one first. Unix ms. */
export type ToldTimes = readonly { readonly stream: string; readonly at: number }[];

/**
 * The last checkpoint and what stands behind it. Payments and claims do not count: one call writes them beside its job,
 * by one clock.
 */
export function evolveTold(times: ToldTimes, stream: string, event: DomainEvent): ToldTimes {
  if (isPaymentEvent(event) || event.type === 'KeyClaimed' || event.type === 'KeyReleased') return times;
  const told = { stream, at: toldAt(event) };
  if (event.type === 'CheckpointSigned') return [told];
  const before = times.find((time) => time.stream === stream)?.at ?? told.at;
  const others = times.filter((time) => time.stream !== stream);
  return [...others, { stream, at: Math.max(before, told.at) }].sort((a, b) => b.at - a.at).slice(0, 2);
}

/** The second-latest of them: one clock that runs ahead makes nothing late. 0 where only one stream tells any. */
export const reachedAt = (times: ToldTimes): number => times[1]?.at ?? 0;
