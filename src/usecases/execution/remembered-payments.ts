// What this process remembers of payments: which are unconfirmed, and how often a request did not match its payment. What
// the event log contains always takes precedence.
import { LIMITS, TIMES } from '#src/domain/limits.ts';
import { deleteOldest } from '#src/lib/delete-oldest.ts';
import type { Clock } from '#src/ports/clock.ts';

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
