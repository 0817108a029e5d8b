// When an event was made, by the relay's own word: the time of storage is nobody's promise.
import { type ClaimEvent, type DomainEvent, isPaymentEvent, type PaymentEvent } from '#src/domain/events.ts';

/** Payments and claims do not count: one call writes them beside its job, by one clock. */
type Beside = PaymentEvent | ClaimEvent;

const isBeside = (event: DomainEvent): event is Beside =>
  isPaymentEvent(event) || event.type === 'IdempotencyKeyClaimed' || event.type === 'IdempotencyKeyReleased';

function instantOf(event: Exclude<DomainEvent, Beside>): string {
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
    case 'DecisionRecorded':
      return event.data.createdAt;
    case 'SigningKeyActivated':
      return event.data.activatedAt;
    case 'SigningKeyRetired':
      return event.data.retiredAt;
    default:
      return event satisfies never;
  }
}

/** The latest times that two streams tell, later one first. Unix ms. */
export type ToldTimes = readonly { readonly stream: string; readonly at: number }[];

/** The last checkpoint and what stands behind it. */
export function evolveTold(times: ToldTimes, stream: string, event: DomainEvent): ToldTimes {
  if (isBeside(event)) return times;
  const told = { stream, at: Date.parse(instantOf(event)) };
  if (event.type === 'CheckpointSigned') return [told];
  const before = times.find((time) => time.stream === stream)?.at ?? told.at;
  const others = times.filter((time) => time.stream !== stream);
  return [...others, { stream, at: Math.max(before, told.at) }].sort((a, b) => b.at - a.at).slice(0, 2);
}

/** The second-latest of them: one clock that runs ahead makes nothing late. 0 where only one stream tells any. */
export const reachedAt = (times: ToldTimes): number => times[1]?.at ?? 0;
