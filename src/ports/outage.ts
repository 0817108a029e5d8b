// The errors by which the parts of the service say that they are unavailable.
import { Fault } from '#src/domain/refusal.ts';
import { EventLogUnavailable } from './event-log.ts';

/** Anything else that reaches the end of a piece of work is a defect of this program: `Logger.bug`. */
export const isOutage = (error: unknown): boolean =>
  error instanceof Fault || error instanceof EventLogUnavailable;
