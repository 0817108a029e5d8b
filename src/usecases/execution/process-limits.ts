// What limits the calls of one process: executions in flight, one call at a time for one idempotency key, unconfirmed
// payments, and wrong guesses. What the event log contains always takes precedence.
import { LIMITS, TIMES } from '#src/domain/limits.ts';
import { type Refused, tooManyInFlight } from '#src/domain/refusal.ts';
import { deleteOldest } from '#src/lib/delete-oldest.ts';
import { Cancel } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';

/** Gives back what was taken; calling it again does nothing. */
export type Release = () => void;

export function once(giveBack: () => void): Release {
  let held = true;
  return () => {
    if (!held) return;
    held = false;
    giveBack();
  };
}

export type Slots = {
  /** A slot for one execution, or the refusal. `perPayer` null: the payer has no limit of its own. `of`: `calls` if absent. */
  take(
    payer: string,
    perPayer: number | null,
    of?: 'calls' | 'runs',
  ): Release | Refused<'too_many_in_flight'>;
  /** `calls`: without runs of schedules. */
  inFlight(of?: 'calls'): number;
};

/**
 * Refuses at once instead of queueing without bound. `max`: executions over all payers. `forRuns`: how many of them calls
 * leave to runs of schedules, also while there are none.
 */
export function inFlightSlots(max: number, { forRuns = 0 } = {}): Slots {
  const byPayer = new Map<string, number>();
  let [all, calls] = [0, 0];
  return {
    take(payer, perPayer, kind = 'calls') {
      const own = byPayer.get(payer) ?? 0;
      const isCall = kind === 'calls';
      const isFull = all >= max || (isCall && calls >= max - forRuns);
      if (isFull || (perPayer !== null && own >= perPayer)) return tooManyInFlight();
      all += 1;
      if (isCall) calls += 1;
      byPayer.set(payer, own + 1);
      return once(() => {
        all -= 1;
        if (isCall) calls -= 1;
        const left = (byPayer.get(payer) ?? 1) - 1;
        if (left > 0) byPayer.set(payer, left);
        else byPayer.delete(payer);
      });
    },
    inFlight: (of) => (of === 'calls' ? calls : all),
  };
}

// ── one call at a time for one idempotency key ──────────────────────────────────────────────────────────

/** `end`: hands the turn on. */
export type Turn = {
  readonly end: Release;
  /** Its call waits for the event log, and its caller was answered so. */
  readonly stall: () => void;
};

/**
 * Calls with one name take turns from their look-up to their claim, so that of many parallel calls with one idempotency
 * key only one is verified and takes a unit of the quota. `late`: the turn did not come within 2 s; `stalled`: since the
 * call before waits for the event log.
 */
export type Turns = (name: string) => Promise<Turn | 'late' | 'stalled'>;

const TURN_WAIT_MS = 2000;

type Waiting = { readonly ended: Cancel; turn: Turn | null };

/** A turn that is taken, and who waits for it, in order. */
type Taken = { readonly waiting: Waiting[]; isStalled: boolean };

export function claimTurns(clock: Pick<Clock, 'sleep'>): Turns {
  /** By name. Who gives up leaves nothing on the turn before it. */
  const names = new Map<string, Taken>();
  function turnOf(name: string, taken: Taken): Turn {
    taken.isStalled = false;
    let isOver = false;
    return {
      end: once(() => {
        isOver = true;
        const next = taken.waiting.shift();
        if (next === undefined) {
          names.delete(name);
          return;
        }
        next.turn = turnOf(name, taken);
        next.ended.abort();
      }),
      stall() {
        if (!isOver) taken.isStalled = true;
      },
    };
  }
  return async (name) => {
    const taken = names.get(name);
    if (taken === undefined) {
      const first: Taken = { waiting: [], isStalled: false };
      names.set(name, first);
      return turnOf(name, first);
    }
    const own: Waiting = { ended: new Cancel(), turn: null };
    taken.waiting.push(own);
    await clock.sleep(TURN_WAIT_MS, own.ended);
    if (own.turn !== null) return own.turn;
    taken.waiting.splice(taken.waiting.indexOf(own), 1);
    return taken.isStalled ? 'stalled' : 'late';
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
