// Reads events of some types in the order of the event log, page by page.
import { decodeEvent, type RecordedEvent } from '#src/domain/event-codec.ts';
import { newerKind } from '#src/domain/event-versions.ts';
import type { DomainEvent, EventOf, EventType } from '#src/domain/events.ts';
import { type EventLog, EventOfNewerRelease } from '#src/ports/event-log.ts';

/** null for a malformed event, which no release has written. Throws `EventOfNewerRelease`. */
export function findEvent(recorded: RecordedEvent): DomainEvent | null {
  const event = decodeEvent(recorded);
  const newer = event === null ? newerKind(recorded) : null;
  if (newer !== null) throw new EventOfNewerRelease(newer, recorded);
  return event;
}

/** As `findEvent`, but throws for a malformed event. No id: a worker logs each cause once, however many streams have it. */
export function eventIn(recorded: RecordedEvent): DomainEvent {
  const event = findEvent(recorded);
  if (event !== null) return event;
  throw new Error(`an event of ${recorded.stream.split('-')[0]} cannot be read: ${recorded.type}`);
}

/** In a process that serves, a page blocks the thread for about two milliseconds. */
const PAGE = 128;

/** All events of these types after a position, in the log's order. Throws as `eventIn`. */
export async function* eventsOf<T extends EventType>(
  log: Pick<EventLog, 'readAll'>,
  types: readonly T[],
  from: string | null = null,
  betweenPages?: () => Promise<void>,
): AsyncGenerator<{ readonly recorded: RecordedEvent; readonly event: EventOf<T> }> {
  for (let after = from; ; ) {
    const page = await log.readAll({ after, max: PAGE, types });
    for (const recorded of page) {
      const event = eventIn(recorded);
      if (isOneOf(types, event)) yield { recorded, event };
    }
    if (page.length < PAGE) return;
    after = page.at(-1)?.position ?? null;
    await betweenPages?.();
  }
}

const isOneOf = <T extends EventType>(
  types: readonly T[],
  event: { readonly type: EventType },
): event is EventOf<T> => types.some((type) => type === event.type);
