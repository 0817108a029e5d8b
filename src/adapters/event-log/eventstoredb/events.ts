// Converts events of the server to events of this log: which of them belong to it, and their positions as text.
import { jsonEvent, type Position, type ResolvedEvent } from '@eventstore/db-client';
import type { Damage } from '#src/domain/damage.ts';
import { EVENT_TYPES } from '#src/domain/events.ts';
import type { NewEvent, RecordedEvent } from '#src/ports/event-log.ts';
import type { Scanned } from '#src/ports/event-scan.ts';

/**
 * `event` null: not part of this log, since it is the server's own or not a JSON object. `damage`: it is of a type of this
 * log all the same, so it cannot be what was written.
 */
export type ServerEvent = {
  readonly position: string;
  readonly event: RecordedEvent | null;
  readonly damage: Damage | null;
};

/** Both numbers in a fixed width, so that positions compare as text. */
export function eventStorePosition({ commit, prepare }: Position): string {
  return `${String(commit).padStart(20, '0')}-${String(prepare).padStart(20, '0')}`;
}

export function positionOf(position: string): Position {
  const [, commit, prepare] = /^(\d{20})-(\d{20})$/.exec(position) ?? [];
  if (commit === undefined || prepare === undefined) throw new RangeError('not a position of this log');
  return { commit: BigInt(commit), prepare: BigInt(prepare) };
}

/** The client serialises the data later, so it gets a copy that the caller cannot change. */
export function eventToAppend(event: NewEvent) {
  const { id, type, data, metadata }: NewEvent = JSON.parse(JSON.stringify(event));
  return jsonEvent({ id, type, data, metadata });
}

const OWN_TYPES: ReadonlySet<string> = new Set(EVENT_TYPES);

/** null for a record without an event, such as a link to a deleted event. */
export function serverEvent({ event }: ResolvedEvent): ServerEvent | null {
  if (event?.position === undefined) return null;
  const { streamId: stream, id, revision, type, metadata } = event;
  const position = eventStorePosition(event.position);
  const data: unknown = event.isJson ? event.data : null;
  if (type.startsWith('$') || stream.startsWith('$') || !isObject(data)) {
    const place = { from: position, to: position, stream, revision: String(revision) };
    const isDamaged = event.isJson && OWN_TYPES.has(type);
    return { position, event: null, damage: isDamaged ? { ...place, problem: 'changed' } : null };
  }
  const created = event.created.toISOString();
  const recorded = { stream, revision, position, id, type, data, created };
  const whole = { ...recorded, metadata: isObject(metadata) ? metadata : {} };
  return { position, event: whole, damage: null };
}

/** The client returns parsed JSON; data that are not JSON arrive as bytes or as a string. */
function isObject(value: unknown): value is RecordedEvent['data'] {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
  );
}

/** For a scan: nothing for what is not part of this log. */
export function scannedEvent({ event, damage }: ServerEvent): readonly Scanned[] {
  if (damage !== null) return [{ kind: 'damaged', damage }];
  return event === null ? [] : [{ kind: 'event', event }];
}
