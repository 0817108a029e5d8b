// From a stored event to a domain event: known type, known version, right shape, or null. Upcasters live here.
import { hasLoneSurrogate, type JsonObject } from './canonical-json.ts';
import { type DomainEvent, EVENT_SCHEMAS, type EventType } from './events.ts';
import { shapeCheck } from './shape-check.ts';

/** An event as the log returns it. */
export type RecordedEvent = {
  readonly stream: string;
  /** 0-based, within its stream. */
  readonly revision: bigint;
  /** Opaque; compares as text in the log's global order. */
  readonly position: string;
  /** UUID. */
  readonly id: string;
  readonly type: string;
  readonly data: JsonObject;
  readonly metadata: JsonObject;
  /** When the log stored it: RFC 3339, UTC. */
  readonly created: string;
};

const checks = new Map(
  Object.entries(EVENT_SCHEMAS).map(([type, schema]) => [type as EventType, shapeCheck(schema)]),
);

/** The domain event that a recorded one holds, or null for an unknown type, version or shape. */
export function decodeEvent(recorded: Pick<RecordedEvent, 'type' | 'data'>): DomainEvent | null {
  const fits = checks.get(recorded.type as EventType);
  if (fits?.(recorded.data) !== true) return null;
  return { type: recorded.type, data: recorded.data } as unknown as DomainEvent;
}

/**
 * The event as whoever projects or audits reads it: null also for what Postgres does not take, so that read models, the
 * transparency log's leaves and an audit count the same events, whatever they are stored in.
 */
export function readEvent(recorded: Pick<RecordedEvent, 'type' | 'data'>): DomainEvent | null {
  const event = decodeEvent(recorded);
  return event !== null && isStorable(event.data) ? event : null;
}

/** Postgres takes neither U+0000 nor half a surrogate pair; no event of ours holds one. */
function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return !value.includes('\u0000') && !hasLoneSurrogate(value);
  if (typeof value !== 'object' || value === null) return true;
  return Object.values(value).every(isStorable);
}
