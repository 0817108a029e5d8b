// An idempotency key's claim: the job that a payer's key belongs to, and when the key is free again.

import type { IdempotencyKeyClaimed } from '../events/payment.ts';
import { type ClaimEvent, type EventFacts, type EventOf, type Events, event } from '../events.ts';
import { TIMES } from '../limits.ts';

export type Claim =
  | { readonly status: 'free' }
  | { readonly status: 'held'; readonly claimed: IdempotencyKeyClaimed };

export const freeClaim: Claim = { status: 'free' };

export function evolveClaim(claim: Claim, event: ClaimEvent): Claim {
  switch (event.type) {
    case 'IdempotencyKeyClaimed':
      return claim.status === 'free' ? { status: 'held', claimed: event.data } : claim;
    case 'IdempotencyKeyReleased':
      return claim.status === 'held' && claim.claimed.jobId === event.data.jobId ? freeClaim : claim;
    default:
      return event satisfies never;
  }
}

/** Why a held key may be taken from its holder. Nothing else ends a claim, and its age alone never does. */
export type ReleaseReason = EventOf<'IdempotencyKeyReleased'>['data']['reason'];

/** No events: the job holds the key already, and its claim has not ended. `lost`: another job holds it. */
export function claimKey(
  facts: EventFacts<'IdempotencyKeyClaimed'>,
  release: ReleaseReason | null,
  claim: Claim,
): Events<readonly ClaimEvent[]> | { readonly kind: 'lost'; readonly holder: IdempotencyKeyClaimed } {
  const fresh = event('IdempotencyKeyClaimed', facts);
  if (claim.status === 'free') return { kind: 'events', events: [fresh] };
  const holder = claim.claimed;
  if (release === null)
    return holder.jobId === facts.jobId ? { kind: 'events', events: [] } : { kind: 'lost', holder };
  return { kind: 'events', events: [releaseKey(holder.jobId, release, facts.claimedAt), fresh] };
}

export function releaseKey(
  jobId: string,
  reason: ReleaseReason,
  releasedAt: string,
): EventOf<'IdempotencyKeyReleased'> {
  return event('IdempotencyKeyReleased', { jobId, reason, releasedAt });
}

/** A key frees 7 days after its job's completion. `completedAt`: RFC 3339; `nowMs`: Unix ms. */
export function retentionOver(completedAt: string, nowMs: number): boolean {
  return nowMs >= Date.parse(completedAt) + TIMES.idempotencyRetentionMs;
}
