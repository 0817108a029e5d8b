// May a call go on: judgement for new requests, a slot for all, then the facilitator's verdict and a unit of quota.

import { isOwnLoop } from '#src/domain/destination/outbound-headers.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { isBound } from '#src/domain/payment/state.ts';
import { Fault, type Refused, refused } from '#src/domain/refusal.ts';
import type { Payments } from '#src/ports/payments.ts';
import type { QuotaRule } from '#src/ports/quota.ts';
import { type JudgeDeps, judgeRequest, takeQuota } from '#src/usecases/decisions/judge-request.ts';
import { loadPayment } from '#src/usecases/event-streams.ts';
import type { Call } from './execution-call.ts';
import { findKnown, isCopy, type Known, type KnownDeps } from './idempotency.ts';
import { type PaidSlotDeps, takePaidSlot } from './paid-slot.ts';
import type { Slot } from './slots.ts';

export type AdmissionDeps = JudgeDeps &
  KnownDeps &
  PaidSlotDeps & {
    readonly payments: Payments;
    /** What stands in our Via. */
    readonly pseudonym: string;
  };

const MINUTE_MS = 60_000;

/**
 * A signature that only a contract could judge may be anybody's, and each try costs us look-ups: few a minute for each
 * address, taken after one look at the payment's own stream. A copy of what was accepted before is the wallet's own, and
 * nobody who merely names the wallet may keep it from what it paid for.
 */
export async function paceContract(deps: AdmissionDeps, call: Call): Promise<Refused | null> {
  const { paymentStream } = call.lookup;
  if (call.presented?.signer !== 'contract' || paymentStream === null) return null;
  const { state } = await loadPayment(deps.log, paymentStream);
  if (isBound(state) && isCopy(call.lookup, state.reserved)) return null;
  const maxRequests = LIMITS.contractWalletPerMinute.max;
  return pace(deps, { name: 'contract-wallet', windowMs: MINUTE_MS, maxRequests }, call.payer);
}

/**
 * What is known by its key alone is the payer's. An authorization to somebody else is no proof of being the payer: it
 * may be anybody's copy of what stands on chain. And a contract wallet's payer is anybody's word until the facilitator
 * has verified the payment: it comes first, then the streams are read again. null: the answer may be given.
 */
export async function provePayer(
  deps: AdmissionDeps,
  call: Call,
  known: Known,
): Promise<Refused | 'again' | null> {
  const { presented } = call;
  if (presented === null || known.kind === 'new' || known.by === 'payment') return null;
  const foreign = deps.payments.validateTerms(presented);
  if (foreign !== null) return foreign;
  if (presented.signer !== 'contract' || call.verified) return null;
  return (await verify(deps, call)) ?? 'again';
}

/** For new requests only: what was accepted once is not judged again. */
export async function validateNew(deps: AdmissionDeps, call: Call): Promise<Refused | null> {
  if (isOwnLoop(call.via, deps.pseudonym)) {
    return refused('relay_loop', 'This request came through this relay: it would call itself for ever.');
  }
  const unfit = call.presented === null ? null : deps.payments.validateNew(call.presented, deps.clock.now());
  return unfit ?? call.notApproved ?? judgeRequest(deps, call.read.target, call.payer);
}

/**
 * A slot in flight; per payer where somebody pays (in demo mode all callers are one payer). A payment that was accepted
 * before proves its payer, a contract wallet's too.
 */
export async function admit(deps: AdmissionDeps, call: Call, known: Known): Promise<Slot | Refused> {
  const account = known.kind === 'resume' ? call.payer : call.account;
  const { paymentStream } = call.lookup;
  if (paymentStream === null) return deps.slots.take(account, null);
  const slot = await takePaidSlot(deps, account, paymentStream, known);
  if (typeof slot !== 'function') return slot;
  const rule = { name: 'payer', windowMs: MINUTE_MS, maxRequests: LIMITS.perMinutePerPayer.max };
  const tooFast = await pace(deps, rule, account).catch((cause: unknown) => {
    slot();
    throw cause;
  });
  if (tooFast === null) return slot;
  slot();
  return tooFast;
}

async function pace(deps: AdmissionDeps, rule: QuotaRule, account: string): Promise<Refused | null> {
  const rate = await deps.quota.take(rule, account);
  if (rate.allowed) return null;
  return refused('rate_limited', 'Too many paid calls in this minute.', {
    retryAfterSeconds: Math.max(1, Math.ceil(rate.resetMs / 1000)),
  });
}

/** The facilitator's verdict, then one unit of the target's quota: the last steps before anything is written. */
export async function accept(deps: AdmissionDeps, call: Call): Promise<Refused | 'again' | null> {
  const refusal = await verify(deps, call);
  if (refusal !== null) return refusal;
  call.accepted = true;
  return takeQuota(deps, call.read.target, call.payer);
}

/** Once a call. */
async function verify(deps: AdmissionDeps, call: Call): Promise<Refused | 'again' | null> {
  if (call.presented === null || call.verified) return null;
  const slot = deps.slots.takeVerify();
  if (typeof slot !== 'function') return slot;
  const verified = await deps.payments.verify(call.presented).finally(slot);
  if (verified.outcome === 'unavailable') {
    throw new Fault('facilitator_unavailable', 'The payment could not be verified: nothing was charged.', {
      retryAfterSeconds: 5,
    });
  }
  if (verified.outcome === 'invalid') return invalidPayment(deps, call, verified.reason);
  call.verified = true;
  return null;
}

/** A copy that came later fails because the first one has settled: then the stream knows it, and it is no 402. */
async function invalidPayment(deps: AdmissionDeps, call: Call, reason: string): Promise<Refused | 'again'> {
  const known = await findKnown(deps, call.lookup);
  const proven = call.presented?.signer !== 'contract';
  if (known.kind !== 'new' && (proven || known.by === 'payment')) return 'again';
  return refused('payment_required', 'The payment is not valid.', { details: { reason } });
}
