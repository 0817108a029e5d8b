// From a stored event to a domain event: known type, known version, right shape, upcast to the version that is written.
import type { TObject } from '@sinclair/typebox';
import { hasLoneSurrogate, type JsonObject } from './canonical-json.ts';
import { type DomainEvent, EVENT_TYPES, EVENTS } from './events.ts';
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

type Version = {
  readonly fits: (value: unknown) => boolean;
  /** null: the version that is written. */
  readonly upcast: ((recorded: never) => unknown) | null;
};

type Declaration = {
  readonly versions: Readonly<Record<number, TObject>>;
  readonly written: number;
  readonly upcast: Readonly<Record<number, (recorded: never) => object>>;
};

/** The data of each version of an event type in the version that is written; null for an unknown version or shape. */
export function readerOf({ versions, written, upcast }: Declaration): (data: JsonObject) => unknown {
  const known: ReadonlyMap<unknown, Version> = new Map(
    Object.entries(versions).map(([v, schema]) => {
      const change = upcast[Number(v)];
      const toWritten = change && ((recorded: never) => ({ ...change(recorded), v: written }));
      return [Number(v), { fits: shapeCheck(schema), upcast: toWritten ?? null }] as const;
    }),
  );
  return (data) => {
    const version = known.get(data?.v);
    if (version?.fits(data) !== true) return null;
    return version.upcast === null ? data : version.upcast(data as never);
  };
}

const readers: ReadonlyMap<string, ReturnType<typeof readerOf>> = new Map(
  EVENT_TYPES.map((type) => [type, readerOf(EVENTS[type])]),
);

/**
 * The domain event of a recorded one, in the version that is written; null for an unknown type, version or shape. Hash
 * chains, leaves and hashes are of the recorded event, never of this one.
 */
export function decodeEvent({ type, data }: Pick<RecordedEvent, 'type' | 'data'>): DomainEvent | null {
  const read = readers.get(type)?.(data) ?? null;
  return read === null ? null : ({ type, data: read } as DomainEvent);
}

/**
 * The event as projections and audits read it: null also for text that Postgres does not store, so that read models, the
 * transparency log's leaves and an audit count the same events, whatever store they use.
 */
export function readEvent(recorded: Pick<RecordedEvent, 'type' | 'data'>): DomainEvent | null {
  const event = decodeEvent(recorded);
  return event !== null && isStorable(event.data) ? event : null;
}

/** Postgres stores neither U+0000 nor half a surrogate pair; no event of this service contains one. */
function isStorable(value: unknown): boolean {
  if (typeof value === 'string')
    return !/[\0\ud800-\udfff]/.test(value) || (!value.includes('\0') && !hasLoneSurrogate(value));
  if (typeof value !== 'object' || value === null) return true;
  // A plain loop: this runs for each member of each event of a rebuild.
  for (const name in value) if (!isStorable((value as JsonObject)[name])) return false;
  return true;
}
