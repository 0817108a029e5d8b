// How bad a seed's world is: drawn once, and set to calm when the faults end.

import { HONEST, type PaymentWeather } from '#test/support/chain/memory-payments.ts';
import type { Random } from '#test/support/world/random.ts';
import type { LogWeather } from './log.ts';
import type { StoreWeather } from './row-store.ts';
import type { TargetWeather } from './target.ts';

export type Weather = {
  readonly log: LogWeather;
  readonly store: StoreWeather;
  readonly vault: StoreWeather;
  readonly payments: PaymentWeather;
  readonly target: TargetWeather;
  readonly confirmWaitMs: number;
  readonly batchSize: number;
  /** Virtual seconds between two disturbances (an outage, a freeze, a step of a clock, a reorganisation); 0: none. */
  readonly disturbedEvery: number;
  /** Probability that a process is disturbed, or an operator acts, right after an event that matters. */
  readonly spite: number;
  /** Processes that are ended at one of their calls, and started again. */
  readonly kills: number;
  readonly stops: number;
};

export function drawWeather(random: Random): Weather {
  // Many calm parts: deep states need that most things work.
  const level = () => (random.chance(0.45) ? 0 : random.between(0, 1) ** 2);
  const [log, store, money, node] = [level(), level(), level(), level()];
  const odd = (most: number) => money * most * random.next();
  return {
    log: {
      lost: 0.06 * log * random.next(),
      unanswered: 0.1 * log * random.next(),
      late: 0.08 * log * random.next(),
    },
    store: { unavailable: 0.05 * store * random.next(), lostAnswer: 0.03 * store * random.next() },
    vault: { unavailable: 0.1 * store, lostAnswer: 0.06 * store },
    payments: {
      settle: {
        honest: 1,
        refused: odd(0.5),
        down: odd(1),
        unanswered: odd(1),
        pending: odd(1),
        pending_dropped: odd(0.5),
        refused_and_moved: odd(0.6),
        settled_without_transfer: odd(0.4),
      },
      verifyUnavailable: 0.3 * level(),
      nodeUnavailable: 0.4 * node * random.next(),
      scanOmits: random.chance(0.3) ? 0.4 : 0,
      stateGone: random.chance(0.3) ? random.pick([0.1, 1]) : 0,
    },
    target: {
      outcome: { answers: 3, error: random.next(), not_connected: 0.4, silent: 0.3, cut: 0.2, redirect: 0.1 },
      dnsFails: 0.2 * level(),
    },
    confirmWaitMs: random.pick([0, 3000, 30_000]),
    batchSize: random.pick([1, 2, 7, 500]),
    disturbedEvery: random.chance(0.4) ? 0 : random.between(8, 60),
    spite: random.chance(0.4) ? 0 : random.between(0.02, 0.2),
    kills: random.chance(0.3) ? 0 : random.int(1, 4),
    stops: random.chance(0.7) ? 0 : 1,
  };
}

/** The faults end. */
export function calm({ log, store, vault, payments, target }: Weather): void {
  Object.assign(log, { lost: 0, unanswered: 0, late: 0 });
  for (const each of [store, vault]) Object.assign(each, { unavailable: 0, lostAnswer: 0 });
  Object.assign(payments, HONEST);
  Object.assign(target, { dnsFails: 0 });
}
