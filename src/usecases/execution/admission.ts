// What a call has to pass before it costs anything: the concurrency limits, the rate limits, and the memory that both
// of them and the guess limit need. All of it is this process's own; what the event log says always takes precedence.
import { LIMITS, TIMES } from '#src/domain/limits.ts';
import { isBound, isSurelyOver } from '#src/domain/payment/state.ts';
import { type Refused, refused } from '#src/domain/refusal.ts';
import { Cancel } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { Quota } from '#src/ports/quota.ts';
import { loadPayment } from '#src/usecases/event-streams.ts';

const MINUTE_MS = 60_000;

/** Gives back what was taken; calling it again does nothing. */
export type Release = () => void;

function once(giveBack: () => void): Release {
  let held = true;
  return () => {
    if (!held) return;
    held = false;
    giveBack();
  };
}

export function deleteOldest<K>(entries: Map<K, unknown>): void {
  for (const oldest of entries.keys()) {
    entries.delete(oldest);
    return;
  }
}

// ── concurrency ─────────────────────────────────────────────────────────────────────────────────────────

export type Slots = {
  /** A slot for one execution, or the refusal. `perPayer` null: the payer has no limit of its own. */
  take(payer: string, perPayer: number | null): Release | Refused<'too_many_in_flight'>;
  /** A slot for one payment that is being verified. */
  takeVerify(): Release | Refused<'too_many_in_flight'>;
  inFlight(): number;
};

/** Refuses at once instead of queueing without bound. `max`: executions over all payers. */
export function inFlightSlots(max: number): Slots {
  const byPayer = new Map<string, number>();
  let all = 0;
  let verifies = 0;
  return {
    take(payer, perPayer) {
      const own = byPayer.get(payer) ?? 0;
      if (all >= max || (perPayer !== null && own >= perPayer)) return tooManyInFlight();
      all += 1;
      byPayer.set(payer, own + 1);
      return once(() => {
        all -= 1;
        const left = (byPayer.get(payer) ?? 1) - 1;
        if (left > 0) byPayer.set(payer, left);
        else byPayer.delete(payer);
      });
    },
    takeVerify() {
      if (verifies >= LIMITS.verifiesInFlight.max) return tooManyInFlight();
      verifies += 1;
      return once(() => {
        verifies -= 1;
      });
    },
    inFlight: () => all,
  };
}

export const tooManyInFlight = () =>
  refused('too_many_in_flight', 'Too many calls are in flight: try again shortly.', { retryAfterSeconds: 1 });

// ── one call at a time for one idempotency key ──────────────────────────────────────────────────────────

/**
 * Calls with one name take turns from their look-up to their claim, so that of many parallel calls with one idempotency
 * key only one is verified and takes a unit of the quota. null: the turn did not come within 2 s.
 */
export type Turns = (name: string) => Promise<Release | null>;

const TURN_WAIT_MS = 2000;

export function claimTurns(clock: Pick<Clock, 'sleep'>): Turns {
  const last = new Map<string, Promise<void>>();
  return async (name) => {
    const before = last.get(name);
    const { promise, resolve } = Promise.withResolvers<void>();
    const turn = Promise.all([before, promise]).then(() => {
      if (last.get(name) === turn) last.delete(name);
    });
    last.set(name, turn);
    if (before === undefined) return resolve;
    const timer = new Cancel();
    const late = clock.sleep(TURN_WAIT_MS, timer).then(() => 'late');
    const isLate = (await Promise.race([before, late])) === 'late';
    timer.abort();
    if (!isLate) return resolve;
    resolve();
    return null;
  };
}

// ── unconfirmed payments ────────────────────────────────────────────────────────────────────────────────

/** Payments that are known here to be unconfirmed, by account: each counts as a call in flight. */
export type UnconfirmedPayments = {
  /** A settle call of this payment had no conclusive answer. */
  add(account: string, stream: string): void;
  /** The payment is confirmed, rejected or over. */
  drop(stream: string): void;
  /** Streams of the account's payments, oldest first, except the call's own. */
  waiting(account: string, own: string): readonly string[];
};

/** `limit`: payments held over all accounts; beyond it the oldest are forgotten. */
export function unconfirmedPayments(limit = 10_000): UnconfirmedPayments {
  const accounts = new Map<string, string>();
  const streams = new Map<string, Set<string>>();
  const drop = (stream: string) => {
    const account = accounts.get(stream);
    if (account === undefined) return;
    accounts.delete(stream);
    const own = streams.get(account);
    own?.delete(stream);
    if (own?.size === 0) streams.delete(account);
  };
  return {
    add(account, stream) {
      if (accounts.has(stream)) return;
      accounts.set(stream, account);
      streams.set(account, (streams.get(account) ?? new Set()).add(stream));
      if (accounts.size > limit) for (const oldest of accounts.keys()) return drop(oldest);
    },
    drop,
    waiting: (account, own) => [...(streams.get(account) ?? [])].filter((stream) => stream !== own),
  };
}

// ── wrong guesses ───────────────────────────────────────────────────────────────────────────────────────

/**
 * A payment header can be rebuilt from chain data: it must not become an oracle for the request it paid for. Counts
 * requests that do not match their payment.
 */
export type GuessLimit = {
  count(stream: string): void;
  /** After LIMITS.mismatchesPerPayment.max of them the payment is not compared with any request for an hour. */
  isClosed(stream: string): boolean;
};

/** `limit`: payments remembered; beyond it the one without a wrong guess for the longest time is forgotten. */
export function guessLimit(clock: Pick<Clock, 'monotonic'>, limit = 10_000): GuessLimit {
  const guesses = new Map<string, { readonly count: number; readonly closedAt: number | null }>();
  const isClosed = (stream: string) => {
    const closedAt = guesses.get(stream)?.closedAt ?? null;
    if (closedAt === null) return false;
    if (clock.monotonic() - closedAt < TIMES.mismatchBlockMs) return true;
    guesses.delete(stream);
    return false;
  };
  return {
    isClosed,
    count(stream) {
      if (isClosed(stream)) return;
      const count = (guesses.get(stream)?.count ?? 0) + 1;
      guesses.delete(stream);
      guesses.set(stream, {
        count,
        closedAt: count < LIMITS.mismatchesPerPayment.max ? null : clock.monotonic(),
      });
      if (guesses.size > limit) deleteOldest(guesses);
    },
  };
}

// ── a paying caller's slot ──────────────────────────────────────────────────────────────────────────────

export type PaidSlotDeps = {
  readonly log: EventLog;
  readonly clock: Pick<Clock, 'now'>;
  readonly slots: Slots;
  readonly unconfirmed: UnconfirmedPayments;
  readonly quota: Quota;
};

type PaidSlot = {
  /** Whose calls in flight and calls a minute this one counts among. */
  readonly caller: string;
  /** Whose unconfirmed payments count. */
  readonly account: string;
  readonly paymentStream: string;
  /** Unconfirmed payments count against new calls only, so that a repeat of one of them is never refused for the others. */
  readonly isNew: boolean;
};

/** How many streams are read again, since another process or an operator may have resolved them. */
const READ_AGAIN_MAX = 8;

/** LIMITS.inFlightPerPayer calls in flight, unconfirmed payments included; LIMITS.perMinutePerPayer a minute. */
export async function takePaidSlot(deps: PaidSlotDeps, it: PaidSlot): Promise<Release | Refused> {
  const { caller, account, paymentStream, isNew } = it;
  const waiting = () => (isNew ? deps.unconfirmed.waiting(account, paymentStream) : []);
  await dropResolved(deps, waiting().slice(0, READ_AGAIN_MAX));
  const unconfirmed = waiting().length;
  const slot = deps.slots.take(caller, LIMITS.inFlightPerPayer.max - unconfirmed);
  if (typeof slot !== 'function' && unconfirmed > 0) return confirmFirst();
  if (typeof slot !== 'function') return slot;
  try {
    const rate = await deps.quota.take(PAYER_RATE, caller);
    if (rate.allowed) return slot;
    slot();
    return rateLimited(rate.resetMs);
  } catch (cause) {
    slot();
    throw cause;
  }
}

/** Drops payments that another process or an operator resolved, and those that can no longer move money. */
async function dropResolved({ log, clock, unconfirmed }: PaidSlotDeps, streams: readonly string[]) {
  const views = await Promise.all(streams.map((stream) => loadPayment(log, stream)));
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

/** null: another attempt is allowed. */
export async function checkWalletFailures(
  quota: Quota,
  { payer, client }: WalletCall,
): Promise<Refused | null> {
  const { allowed, resetMs } = await quota.look(WALLET_FAILURES, `${client} ${payer}`);
  return allowed ? null : rateLimited(resetMs);
}

export const countWalletFailure = (quota: Quota, { payer, client }: WalletCall) =>
  quota.take(WALLET_FAILURES, `${client} ${payer}`);
