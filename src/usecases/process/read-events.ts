// Reads events of some types in the order of the event log, page by page.
import { decodeEvent, type RecordedEvent } from '#src/domain/event-codec.ts';
import type { DomainEvent, EventOf, EventType } from '#src/domain/events.ts';
import type { EventLog } from '#src/ports/event-log.ts';

/** Throws for an event that this release cannot read. */
export function eventIn(recorded: RecordedEvent): DomainEvent {
  const event = decodeEvent(recorded);
  if (event !== null) return event;
  throw new Error(`an event of ${recorded.stream} cannot be read: ${recorded.type} ${recorded.revision}`);
}

/** In a process that serves, a page blocks the thread for about two milliseconds. */
const PAGE = 128;

/** All events of these types after a position, in the log's order. Throws for an event that this release cannot read. */
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
