// The errors by which the parts of the service say that they are unavailable.

import { damagedPlace } from '#src/domain/damage.ts';
import { newerText } from '#src/domain/event-versions.ts';
import { Fault } from '#src/domain/refusal.ts';
import {
  EventDamaged,
  EventLogUnavailable,
  EventOfNewerRelease,
  EventUnreadable,
  LogDamaged,
} from './event-log.ts';

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
  const isLasting = cause instanceof EventUnreadable || cause instanceof LogDamaged;
  const retryAfterSeconds = isLasting ? 60 : 5;
  const options = { cause, retryAfterSeconds, ...(details !== null && { details }) };
  return new Fault('event_log_unavailable', `${problemOf(cause)}: ${outcome}`, options);
}

function problemOf(cause: unknown): string {
  if (cause instanceof EventDamaged)
    return `The event log is damaged at ${damagedPlace(cause.damage)}, until its operator has put it back`;
  if (cause instanceof LogDamaged) return 'The event log is damaged, until its operator has put it back';
  if (cause instanceof EventOfNewerRelease)
    return `A newer release has written ${newerText(cause.kind)} here, which this process cannot read`;
  return 'The event log is unavailable';
}
