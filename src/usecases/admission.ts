// May a call go on: judgement for new requests, a slot for all, then the facilitator's verdict and a unit of quota.
import { LIMITS } from '../domain/limits.ts';
import { Fault, type Refused, refused } from '../domain/refusal.ts';
import { isOwnLoop } from '../domain/target/outbound-headers.ts';
import type { Clock } from '../ports/clock.ts';
import type { EventLog } from '../ports/event-log.ts';
import type { Payments } from '../ports/payments.ts';
import type { Call } from './execution-call.ts';
import { type JudgeDeps, judgeRequest, takeQuota } from './judge-request.ts';
import { findKnown } from './known-job.ts';
import type { Slot, Slots } from './slots.ts';

export type AdmissionDeps = JudgeDeps & {
  readonly log: EventLog;
  readonly clock: Clock;
  readonly payments: Payments;
  readonly slots: Slots;
  /** What stands in our Via. */
  readonly pseudonym: string;
};

/** For new requests only: what was accepted once is not judged again. */
export async function judgeNew(deps: AdmissionDeps, call: Call): Promise<Refused | null> {
  if (isOwnLoop(call.via, deps.pseudonym)) {
    return refused('relay_loop', 'This request came through this relay: it would call itself for ever.');
  }
  const window = call.presented === null ? null : deps.payments.timeWindow(call.presented, deps.clock.now());
  return window ?? call.notApproved ?? judgeRequest(deps, call.read.target, call.payer);
}

const MINUTE_MS = 60_000;

/** A slot in flight; per payer where somebody pays (in demo mode all callers are one payer). */
export async function admit(deps: AdmissionDeps, call: Call): Promise<Slot | Refused> {
  if (call.presented === null) return deps.slots.take(call.payer, null);
  const slot = deps.slots.take(call.payer, LIMITS.jobsInFlightPerPayer);
  if (typeof slot !== 'function') return slot;
  const rule = { name: 'payer', windowMs: MINUTE_MS, maxRequests: LIMITS.jobsPerMinutePerPayer };
  const rate = await deps.quota.take(rule, call.payer).catch((cause: unknown) => {
    slot();
    throw cause;
  });
  if (rate.allowed) return slot;
  slot();
  return refused('rate_limited', 'Too many paid calls in this minute.', {
    retryAfterSeconds: Math.max(1, Math.ceil(rate.resetMs / 1000)),
  });
}

/** The facilitator's verdict, then one unit of the target's quota: the last steps before anything is written. */
export async function accept(deps: AdmissionDeps, call: Call): Promise<Refused | 'again' | null> {
  if (call.presented !== null) {
    const slot = deps.slots.takeVerify();
    if (typeof slot !== 'function') return slot;
    const verified = await deps.payments.verify(call.presented).finally(slot);
    if (verified.outcome === 'unavailable') {
      throw new Fault('facilitator_unavailable', 'The payment could not be verified: nothing was charged.', {
        retryAfterSeconds: 5,
      });
    }
    if (verified.outcome === 'invalid') return invalidPayment(deps, call, verified.reason);
  }
  call.accepted = true;
  return takeQuota(deps, call.read.target, call.payer);
}

/** A copy that came later fails because the first one has settled: then the stream knows it, and it is no 402. */
async function invalidPayment(deps: AdmissionDeps, call: Call, reason: string): Promise<Refused | 'again'> {
  const known = await findKnown(deps, call.lookup);
  if (known.kind !== 'new') return 'again';
  return refused('payment_required', 'The payment is not valid.', { details: { reason } });
}
