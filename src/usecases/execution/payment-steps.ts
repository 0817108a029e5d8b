// What the paid execution does with a payment before money moves: verify, reserve, release.
import { type EventOf, event } from '#src/domain/events.ts';
import { LIMITS } from '#src/domain/limits.ts';
import { claimKey } from '#src/domain/payment/claim.ts';
import type { Payment } from '#src/domain/payment/state.ts';
import { ALLOWED, isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import { isoNow } from '#src/lib/iso.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import type { Payments, PresentedPayment } from '#src/ports/payments.ts';
import type { Quota } from '#src/ports/quota.ts';
import {
  append,
  appendTogetherUntilKnown,
  envelope,
  type JournalDeps,
  PAYMENT,
  type View,
} from '#src/usecases/process/stream.ts';
import type { StreamWatch } from '#src/usecases/process/watch.ts';
import { checkWalletFailures } from './admission.ts';
import { demandUnused, notVerified, recordEarlierUse } from './earlier-use.ts';
import { type Call, isContract, recordedOf, unprovenPayer } from './execution-call.ts';
import { findKnown, type LookUpDeps, type Streams } from './idempotency.ts';
import type { UnconfirmedPayments } from './process-limits.ts';
import type { UnchargedLimit } from './uncharged-limit.ts';
import type { VerifyLimit } from './verify-limit.ts';

export type PaymentDeps = JournalDeps &
  LookUpDeps & {
    readonly payments: Payments;
    readonly owner: string;
    /** A lock proves that no other process is running: what another owner began is not under way any more. */
    readonly exclusive: boolean;
    /** Payment streams found in the middle of another's settlement. */
    readonly watch: StreamWatch;
    readonly unconfirmed: UnconfirmedPayments;
    readonly uncharged: UnchargedLimit;
    readonly verifies: VerifyLimit;
    readonly quota: Quota;
    /** The longest that a call polls the chain after a settle call without a conclusive answer. */
    readonly confirmWaitMs: number;
    /** Aborts when the process is asked to stop: the chain is not polled, and no turn to be verified awaited, any more. */
    readonly stopping?: AbortSignalLike;
  };

/** `verified` false: the payment is known by now, so that its stream is the answer. `by`: who is asked. */
export async function verifyPayment(
  deps: PaymentDeps,
  call: Call,
  verifier: 'facilitator' | 'node' = 'facilitator',
): Promise<{ readonly verified: boolean } | Refused> {
  if (call.presented === null) return { verified: true };
  const { presented } = call;
  const failures = isContract(call) ? await checkWalletFailures(deps.quota, call) : ALLOWED;
  if (isRefused(failures)) return failures;
  return withVerifyPlace(deps, call, () => judgePayment(deps, call, presented, verifier));
}

/**
 * What costs a caller nothing, and us a question to the facilitator or the node: in a place of those that are verified.
 * `payer`: whose place it is.
 */
export async function withVerifyPlace<T>(
  { verifies, stopping }: Pick<PaymentDeps, 'verifies' | 'stopping'>,
  call: Call,
  work: () => Promise<T>,
  payer = unprovenPayer(call),
): Promise<T | Refused> {
  const waitMs = Math.min(LIMITS.verifyWaitMs.max, call.deadline.left());
  const caller = { client: call.client, payer };
  const place = await verifies.enter(caller, waitMs, stopping);
  return isRefused(place) ? place : work().finally(place);
}

async function judgePayment(
  deps: PaymentDeps,
  call: Call,
  presented: PresentedPayment,
  verifier: 'facilitator' | 'node',
): Promise<{ readonly verified: boolean } | Refused> {
  const { payments } = deps;
  const answer = await (verifier === 'node'
    ? payments.verifySignature(presented)
    : payments.verify(presented));
  if (answer.outcome === 'valid')
    return call.run === undefined ? { verified: true } : demandUnused(deps, call);
  if (answer.outcome === 'unavailable') throw notVerified();
  // A later copy fails because the first one has settled: then its stream contains it, and this is no 402.
  const known = await findKnown(deps, call.lookup);
  if (known.kind !== 'new' && (!isContract(call) || known.by === 'payment')) return { verified: false };
  if (known.kind === 'new' && (await recordEarlierUse(deps, known.streams.payment)) === 'paid')
    return { verified: false };
  const { reason } = answer;
  return refused('payment_required', 'The payment is not valid.', { details: { reason } });
}

/**
 * Appends PaymentReserved, unless there is no payment (demo mode), where the log can with IdempotencyKeyClaimed. `payment`: as
 * `Plan` has it. `isClaimed`: the key is claimed.
 */
export async function reservePayment(
  deps: PaymentDeps,
  call: Call,
  streams: Streams,
  jobId: string,
): Promise<{ readonly payment: View<Payment> | null; readonly isClaimed: boolean }> {
  const { payment: view } = streams;
  const reserved = reservation(deps, call, jobId);
  if (reserved === null || view === null) return { payment: null, isClaimed: false };
  if (call.run === undefined) deps.uncharged.taken(call.client, view.stream);
  const begun = deps.clock.monotonic();
  const both = claimedWith(deps, call, streams, reserved);
  const payment = await call.deadline.forAppend(both ?? append(deps, PAYMENT, view, [reserved]));
  const isKnown = deps.clock.monotonic() - begun <= KNOWN_MS;
  return { payment: isKnown ? payment : null, isClaimed: both !== null };
}

const reservation = (deps: PaymentDeps, { presented, lookup }: Call, jobId: string) =>
  presented &&
  event('PaymentReserved', {
    jobId,
    fingerprint: lookup.fingerprint,
    ...recordedOf(presented),
    owner: deps.owner,
    reservedAt: isoNow(deps),
  });

/**
 * Appends both in one; null: the log cannot, the call has no key, another holds it, or it is of a run, which has to be due
 * between the two. Throws `WrongExpectedVersion` if another call was first at one of the streams; then nothing is stored.
 */
function claimedWith(
  deps: PaymentDeps,
  { lookup, run }: Call,
  { payment, claim, release }: Streams,
  reserved: EventOf<'PaymentReserved'>,
): Promise<View<Payment> | null> | null {
  const { appendTogether } = deps.log;
  if (appendTogether === null || payment === null || claim === null || run !== undefined) return null;
  const { jobId, reservedAt: claimedAt } = reserved.data;
  const { fingerprint, paymentStream } = lookup;
  const claiming = claimKey({ jobId, fingerprint, paymentStream, claimedAt }, release, claim.state);
  if (claiming.kind === 'lost' || claiming.events.length === 0) return null;
  const { stream, state, expected } = payment;
  const both = [
    { stream, expected, events: envelope(deps, [reserved], jobId) },
    { stream: claim.stream, expected: claim.expected, events: envelope(deps, claiming.events, jobId) },
  ];
  return appendTogetherUntilKnown(deps, appendTogether, both).then(([first]) =>
    first ? { stream, state: PAYMENT.evolve(state, reserved), expected: first.nextRevision } : null,
  );
}

/** An append that takes longer may be that of a reservation which another process has given up meanwhile. */
const KNOWN_MS = 1000;

/** The payment of this call is over: it was rejected or released. A run's was taken when it was bought. */
export async function countUncharged(
  { uncharged }: Pick<PaymentDeps, 'uncharged'>,
  { client, lookup, run }: Pick<Call, 'client' | 'lookup' | 'run'>,
): Promise<void> {
  if (run === undefined && lookup.paymentStream !== null)
    await uncharged.uncharged(client, lookup.paymentStream);
}
