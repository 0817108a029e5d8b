// How the executions of one process are shared: calls of live callers, those of them whose payment is not verified yet, and
// runs of schedules. Each kind has one at least, however few there are, and what is free leaves the larger part to what pays.
import { LIMITS } from './limits.ts';

export type Places = {
  /** Executions at once: MAX_IN_FLIGHT, or two if a run and a call could not have one each. */
  readonly all: number;
  /** Of these, runs of schedules at most; one of them is kept for runs. 0: there are no schedules. */
  readonly runs: number;
  /** Payments that are verified at once, and of one client address. */
  readonly verifying: number;
  readonly verifyingPerClient: number;
  /** Payments that wait to be verified: with those that are, at most three quarters of the calls. */
  readonly waiting: number;
  /** DNS look-ups before a payment at once, and of one client address. They need no slot. */
  readonly lookUps: number;
  readonly lookUpsPerClient: number;
};

/** Of MAX_IN_FLIGHT. */
const RUNS_SHARE = 0.25;
/** Of the calls, for those whose payment is verified. */
const VERIFIED_SHARE = 0.25;
const LEAST_LOOK_UPS = 16;

export function placesOf(maxInFlight: number, { hasSchedules }: { readonly hasSchedules: boolean }): Places {
  const runs = hasSchedules ? Math.max(1, Math.floor(maxInFlight * RUNS_SHARE)) : 0;
  const all = Math.max(maxInFlight, hasSchedules ? 2 : 1);
  const calls = all - runs;
  const unverified = Math.max(1, calls - Math.ceil(calls * VERIFIED_SHARE));
  const verifying = Math.min(LIMITS.verifiesInFlight.max, Math.ceil(unverified / 2));
  const lookUps = Math.max(LEAST_LOOK_UPS, maxInFlight);
  return {
    all,
    runs,
    verifying,
    verifyingPerClient: Math.min(LIMITS.verifiesPerClient.max, Math.max(1, verifying - 1)),
    waiting: Math.min(LIMITS.verifiesWaiting.max, unverified - verifying),
    lookUps,
    lookUpsPerClient: Math.floor(lookUps / 2),
  };
}
