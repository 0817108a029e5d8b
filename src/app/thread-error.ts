// Errors of a worker thread in the thread that has started it, with their causes.
import { PartsOverlap } from '#projections/projection.ts';
import { CannotRebuild } from '#projections/rebuild-parts.ts';
import { EventDamaged, EventLogUnavailable, EventOfNewerRelease, LogDamaged } from '#src/ports/event-log.ts';

/** An error as a message carries it: of its class only the name. */
export type PlainError = {
  readonly name: string;
  readonly fields: object;
  readonly cause: PlainError | null;
};

export function plainError(error: unknown): PlainError {
  if (!(error instanceof Error)) return plainError(new Error(String(error)));
  const { name, message, stack, cause, ...fields } = error;
  const sendable = Object.fromEntries(
    Object.entries(fields).filter(([, value]) => !['function', 'symbol'].includes(typeof value)),
  );
  return {
    name: error.constructor.name,
    fields: { name, message, stack, ...JSON.parse(JSON.stringify(sendable)) },
    cause: cause === undefined ? null : plainError(cause),
  };
}

/** What is recognised by its class. */
const CLASSES: ReadonlyMap<string, object> = new Map(
  [EventDamaged, EventLogUnavailable, EventOfNewerRelease, LogDamaged, CannotRebuild, PartsOverlap].map(
    (kind) => [kind.name, kind.prototype],
  ),
);

export function errorOf({ name, fields, cause }: PlainError): Error {
  const error = cause === null ? new Error() : new Error('', { cause: errorOf(cause) });
  Object.setPrototypeOf(error, CLASSES.get(name) ?? Error.prototype);
  return Object.assign(error, fields);
}
