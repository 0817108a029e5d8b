// An exported event log as NDJSON: a line for its head, one for each event in global order or for damage, and one for its
// end. Each line
// has one canonical form, the one written here; any other form is refused.
import { Type } from '@sinclair/typebox';
import { DAMAGE_PROBLEMS, type Damage } from '#src/domain/damage.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { type Json, parsedJson } from '../canonical-json.ts';
import { Instant, Nullable, strict } from '../event-fields.ts';
import { shapeCheck } from '../shape-check.ts';

export const EXPORT_FORMAT = 'relay-export/1';

export type ExportHead = {
  /** Of the transparency log; null if there was none. */
  readonly origin: string | null;
  /** Position after which the export begins; null: with the first event. */
  readonly from: string | null;
};

export type ExportEnd = {
  readonly events: number;
  /** The number of events with revision 0. */
  readonly streams: number;
  /** Position of the last event, damaged or not; null if there is none. */
  readonly head: string | null;
};

export const NO_EVENTS: ExportEnd = { events: 0, streams: 0, head: null };

export const withEvent = (
  { events, streams }: ExportEnd,
  { revision, position }: Pick<RecordedEvent, 'revision' | 'position'>,
): ExportEnd => ({
  events: events + 1,
  streams: streams + (revision === 0n ? 1 : 0),
  head: position,
});

/** A line for damage counts no events, but the end is behind it. */
export const withDamage = (end: ExportEnd, { to }: Pick<Damage, 'to'>): ExportEnd => ({ ...end, head: to });

/** A relay accepts at most 128 KiB per job, and writes no event of twice that. */
export const MAX_LINE_BYTES = 256 * 1024;

export const headLine = ({ origin, from }: ExportHead): string =>
  JSON.stringify({ format: EXPORT_FORMAT, origin, from });

export const eventLine = (event: RecordedEvent): string =>
  JSON.stringify({
    position: event.position,
    stream: event.stream,
    revision: String(event.revision),
    type: event.type,
    id: event.id,
    created: event.created,
    data: event.data,
    metadata: event.metadata,
  });

/** In place of events that the relay could not read as they were written. */
export const damageLine = ({ from, to, stream, revision, problem }: Damage): string =>
  JSON.stringify({ damaged: true, from, to, stream, revision, problem });

export const endLine = ({ events, streams, head }: ExportEnd): string =>
  JSON.stringify({ end: true, events, streams, head });

/** Opaque: one number in SQLite, two in EventStoreDB. */
const Position = Type.String({ pattern: '^[0-9A-Za-z._:-]{1,128}$' });
const Name = Type.String({ minLength: 1, maxLength: 4096 });
const Revision = Type.String({ pattern: '^(0|[1-9]\\d{0,18})$' });
const AnyObject = Type.Object({}, { additionalProperties: true });

const isHead = shapeCheck(
  Type.Object(
    {
      format: Type.Literal(EXPORT_FORMAT),
      origin: Nullable(Name),
      from: Nullable(Position),
    },
    strict,
  ),
);
const isEvent = shapeCheck(
  Type.Object(
    {
      position: Position,
      stream: Name,
      revision: Revision,
      type: Name,
      id: Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }),
      created: Instant,
      data: AnyObject,
      metadata: AnyObject,
    },
    strict,
  ),
);
const isDamage = shapeCheck(
  Type.Object(
    {
      damaged: Type.Literal(true),
      from: Position,
      to: Position,
      stream: Nullable(Name),
      revision: Nullable(Revision),
      problem: Type.Union(DAMAGE_PROBLEMS.map((problem) => Type.Literal(problem))),
    },
    strict,
  ),
);
const Total = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const isEnd = shapeCheck(
  Type.Object({ end: Type.Literal(true), events: Total, streams: Total, head: Nullable(Position) }, strict),
);

/** Parses the first line; null if it is not one of this format. */
export function parseHead(line: string): ExportHead | null {
  const value = parsedJson(line);
  if (!isHead(value) || headLine(value) !== line) return null;
  return { origin: value.origin, from: value.from };
}

export type ExportLine =
  | { readonly kind: 'event'; readonly event: RecordedEvent }
  | { readonly kind: 'damaged'; readonly damage: Damage }
  | { readonly kind: 'end'; readonly end: ExportEnd }
  | {
      readonly kind: 'wrong';
      readonly problem: string;
      /** As named in the line, if they can be read. */
      readonly stream: string | null;
      readonly revision: string | null;
    };

/** Any line after the first. */
export function parseLine(line: string): ExportLine {
  const value = parsedJson(line);
  if (value === undefined) return wrong('it is not JSON', value);
  if (isEnd(value)) {
    const { events, streams, head } = value;
    return endLine(value) === line
      ? { kind: 'end', end: { events, streams, head } }
      : wrong(NOT_CANONICAL, value);
  }
  if (isDamage(value)) {
    const { damaged: _, ...damage } = value;
    return damageLine(damage) === line ? { kind: 'damaged', damage } : wrong(NOT_CANONICAL, value);
  }
  if (!isEvent(value)) return wrong('it is neither an event nor the end of an export', value);
  const { revision, data, metadata, ...rest } = value;
  // JSON.parse returns JSON values only.
  const event = {
    ...rest,
    revision: BigInt(revision),
    data: data as Record<string, Json>,
    metadata: metadata as Record<string, Json>,
  };
  return isCanonical(event, line) ? { kind: 'event', event } : wrong(NOT_CANONICAL, value);
}

/** Includes a repeated name in one object: parsers differ in which of the two values they take. */
const NOT_CANONICAL = 'it is not in the canonical form of an export';

const hasLocation = shapeCheck(Type.Object({ stream: Type.String(), revision: Type.String() }));

function wrong(problem: string, value: unknown): ExportLine {
  const { stream, revision } = hasLocation(value) ? value : { stream: null, revision: null };
  return { kind: 'wrong', problem, stream, revision };
}

function isCanonical(event: RecordedEvent, line: string): boolean {
  try {
    return eventLine(event) === line;
  } catch {
    // Nested too deep for JSON.stringify.
    return false;
  }
}
