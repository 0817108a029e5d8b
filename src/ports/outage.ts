// The errors by which the parts of the service say that they are unavailable.

import { damagedPlace } from '#src/domain/damage.ts';
import { Fault } from '#src/domain/refusal.ts';
import { EventDamaged, EventLogUnavailable, LogDamaged } from './event-log.ts';

/** Anything else that reaches the end of a piece of work is a defect of this program: `Logger.bug`. */
export const isOutage = (error: unknown): boolean =>
  error instanceof Fault || error instanceof EventLogUnavailable;

/** `work`, whose outage of the event log a caller is answered with. */
export async function orLogFault<T>(work: Promise<T>, outcome: string): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw cause instanceof EventLogUnavailable ? logFault(cause, outcome) : cause;
  }
}

/** What a caller is answered whose request needs what the event log did not return. `outcome`: what follows for it. */
export function logFault(
  cause: unknown,
  outcome: string,
  details: Readonly<Record<string, string>> | null = null,
): Fault {
  const problem =
    cause instanceof EventDamaged
      ? `The event log is damaged at ${damagedPlace(cause.damage)}, until its operator has put it back`
      : cause instanceof LogDamaged
        ? 'The event log is damaged, until its operator has put it back'
        : 'The event log is unavailable';
  const retryAfterSeconds = cause instanceof EventDamaged || cause instanceof LogDamaged ? 60 : 5;
  const options = { cause, retryAfterSeconds, ...(details !== null && { details }) };
  return new Fault('event_log_unavailable', `${problem}: ${outcome}`, options);
}
