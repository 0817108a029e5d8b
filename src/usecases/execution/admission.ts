// The admission of a paid call before it costs anything: calls in flight and calls a minute of its payer, failed attempts
// of a contract wallet.
import { LIMITS } from '#src/domain/limits.ts';
import { isBound, isSurelyOver } from '#src/domain/payment/state.ts';
import { ALLOWED, type Allowed, isRefused, type Refused, reasonOf, refused } from '#src/domain/refusal.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { Payments, PresentedPayment } from '#src/ports/payments.ts';
import type { Quota } from '#src/ports/quota.ts';
import { load, PAYMENT } from '#src/usecases/process/stream.ts';
import type { ExecuteInput } from './execution-call.ts';
import type { Release, Slots, UnconfirmedPayments } from './process-limits.ts';
import type { UnchargedLimit } from './uncharged-limit.ts';

const MINUTE_MS = 60_000;

export type PaidSlotDeps = {
  readonly log: EventLog;
  readonly clock: Pick<Clock, 'now'>;
  readonly slots: Slots;
  readonly unconfirmed: UnconfirmedPayments;
  readonly uncharged: Pick<UnchargedLimit, 'admit'>;
  readonly quota: Quota;
};

type PaidSlot = {
  /** Whose calls in flight and calls a minute this one counts among. */
  readonly caller: string;
  /** Whose payments count that were taken and not charged; null: it is a run's, which was counted when it was bought. */
  readonly client: string | null;
  /** Whose unconfirmed payments count. */
  readonly account: string;
  readonly paymentStream: string;
  /** Unconfirmed payments count against new calls only, so that a repeat of one of them is never refused for the others. */
  readonly isNew: boolean;
};

/** How many streams are read again, since another process or an operator may have resolved them. */
const READ_AGAIN_MAX = 8;

/**
 * LIMITS.inFlightPerPayer calls in flight, unconfirmed payments included; LIMITS.perMinutePerPayer a minute;
 * LIMITS.unchargedPerDay of the client.
 */
export async function takePaidSlot(deps: PaidSlotDeps, wanted: PaidSlot): Promise<Release | Refused> {
  const { caller, client, account, paymentStream, isNew } = wanted;
  const waiting = () => (isNew ? deps.unconfirmed.waiting(account, paymentStream) : []);
  await dropResolved(deps, waiting().slice(0, READ_AGAIN_MAX));
  const unconfirmed = waiting().length;
  const slot = deps.slots.take(
    caller,
    LIMITS.inFlightPerPayer.max - unconfirmed,
    client === null ? 'runs' : 'calls',
  );
  if (isRefused(slot)) return unconfirmed > 0 ? confirmFirst() : slot;
  try {
    const [rate, today] = await Promise.all([
      deps.quota.take(PAYER_RATE, caller),
      isNew && client !== null ? deps.uncharged.admit(client, paymentStream) : ALLOWED,
    ]);
    if (rate.allowed && !isRefused(today)) return slot;
    slot();
    return isRefused(today) ? today : rateLimited(rate.resetMs);
  } catch (cause) {
    slot();
    throw cause;
  }
}

/** Drops payments that another process or an operator resolved, and those that can no longer move money. */
async function dropResolved({ log, clock, unconfirmed }: PaidSlotDeps, streams: readonly string[]) {
  const views = await Promise.all(streams.map((stream) => load({ log }, PAYMENT, stream)));
  for (const { stream, state } of views) {
    const open = isBound(state) && state.status !== 'settled';
    if (!open || isSurelyOver(state.reserved, clock.now() / 1000)) unconfirmed.drop(stream);
  }
}

const confirmFirst = () =>
  refused(
    'too_many_in_flight',
    'Too many calls are in flight, payments that are not confirmed yet among them: repeat those first.',
    { retryAfterSeconds: 5 },
  );

// ── terms ───────────────────────────────────────────────────────────────────────────────────────────────

/** The payment of a run is judged by the terms of its purchase: of today's, only the payee counts. */
export function validatePayment(
  { payments, clock }: { readonly payments: Payments; readonly clock: Pick<Clock, 'now'> },
  { run }: Pick<ExecuteInput, 'run'>,
  presented: PresentedPayment,
): Allowed | Refused {
  if (run === undefined) return payments.validateNew(presented, clock.now());
  const terms = payments.validateTerms(presented);
  if (!isRefused(terms) || reasonOf(terms) === 'amount_mismatch') return ALLOWED;
  return refused('payment_required', terms.message, { details: { reason: 'terms_changed' } });
}

// ── rates ───────────────────────────────────────────────────────────────────────────────────────────────

const PAYER_RATE = { name: 'payer', windowMs: MINUTE_MS, maxRequests: LIMITS.perMinutePerPayer.max };

const rateLimited = (resetMs: number) =>
  refused('rate_limited', 'Too many paid calls in this minute.', {
    retryAfterSeconds: Math.max(1, Math.ceil(resetMs / 1000)),
  });

/**
 * Who sent a contract wallet's signature is unknown until the facilitator has verified it, so anyone can name a wallet.
 * Failed attempts are counted per client address and wallet: no third party can use up its owner's.
 */
const WALLET_FAILURES = {
  name: 'contract-wallet',
  windowMs: MINUTE_MS,
  maxRequests: LIMITS.contractWalletPerMinute.max,
};

type WalletCall = { readonly payer: string; readonly client: string };

/** Whether another attempt is allowed. */
export async function checkWalletFailures(
  quota: Quota,
  { payer, client }: WalletCall,
): Promise<Allowed | Refused<'rate_limited'>> {
  const { allowed, resetMs } = await quota.look(WALLET_FAILURES, `${client} ${payer}`);
  return allowed ? ALLOWED : rateLimited(resetMs);
}

export const countWalletFailure = (quota: Quota, { payer, client }: WalletCall) =>
  quota.take(WALLET_FAILURES, `${client} ${payer}`);
