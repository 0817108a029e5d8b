// Validates the arguments of an append, for all event log adapters. An invalid argument is an error of the caller, not a
// state of the log: RangeError or TypeError is thrown and nothing is stored.
import type { ExpectedRevision, NewEvent } from '../../ports/event-log.ts';

/** An event with data and metadata as JSON text: later changes by the caller have no effect. */
export type CheckedEvent = {
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
};

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Refuses: no events (there would be no position to return), the same id twice in one call (a repeat could not be
 * distinguished from it), ids that are not lower-case UUIDs (EventStoreDB stores 16 bytes and returns lower case), a
 * negative revision, an empty stream or type, and with a TypeError values that JSON cannot represent (bigint, cycles).
 */
export function checkedAppend(
  stream: string,
  expected: ExpectedRevision,
  events: readonly NewEvent[],
): CheckedEvent[] {
  if (stream === '') throw new RangeError('a stream has a name');
  if (typeof expected === 'bigint' && expected < 0n) throw new RangeError('a revision is not negative');
  if (events.length === 0) throw new RangeError('an append holds at least one event');
  if (new Set(events.map((event) => event.id)).size !== events.length) {
    throw new RangeError('the events of one append have ids of their own');
  }
  return events.map(checkedEvent);
}

function checkedEvent({ id, type, data, metadata }: NewEvent): CheckedEvent {
  if (!UUID.test(id)) throw new RangeError('an event id is a lower-case UUID');
  if (type === '') throw new RangeError('an event has a type');
  return { id, type, data: JSON.stringify(data), metadata: JSON.stringify(metadata) };
}
