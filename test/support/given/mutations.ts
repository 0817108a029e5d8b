// Every systematic change of a record: for each event type each member changed, the event dropped, doubled and swapped. The
// forger is careful: revisions, positions and shapes fit afterwards. Nothing is signed again.
import type { Json, JsonObject } from '#src/domain/canonical-json.ts';
import { readEvent } from '#src/domain/event-codec.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { renumbered } from './audited-record.ts';
import { at, commitment, hex, OTHER_JOB_ID } from './given-events.ts';
import { LONG } from './property-runs.ts';

type Events = readonly RecordedEvent[];

export type Mutation = {
  /** What is mutated, in which way: all mutations of one class are found, or none is. */
  readonly name: string;
  readonly events: Events;
};

/** One event of each kind is enough. `kindOf` null: the event is not mutated. */
export function* mutations(
  events: Events,
  kindOf: (event: RecordedEvent) => string | null,
): Generator<Mutation> {
  const seen = new Set<string>();
  for (const event of events) {
    const kind = kindOf(event);
    if (kind === null || seen.has(kind)) continue;
    seen.add(kind);
    const replaced = (...by: Events) => renumbered(events.flatMap((one) => (one === event ? by : [one])));
    for (const [member, changed] of changedMembers(event, events))
      yield { name: `${kind}: ${member}`, events: replaced(changed) };
    yield { name: `${kind}: dropped`, events: replaced() };
    yield { name: `${kind}: doubled`, events: replaced(event, { ...event, id: fresh(event.id) }) };
    yield { name: `${kind}: copied`, events: replaced(event, event) };
    if (event.revision === 0n)
      yield {
        name: `${kind}: removed`,
        events: renumbered(events.filter(({ stream }) => stream !== event.stream)),
      };
    const behind = events.slice(events.indexOf(event) + 1);
    const next = behind.find(({ stream }) => stream === event.stream);
    if (next !== undefined) yield { name: `${kind}: swapped`, events: swapped(events, event, next) };
  }
}

/** Each two events of different streams that follow each other; `apart`: they are of two jobs. */
export function* swapsAcrossStreams(
  events: Events,
  kindOf: (event: RecordedEvent) => string | null,
): Generator<Mutation> {
  for (const [index, event] of events.entries()) {
    const next = events[index + 1];
    if (next === undefined || next.stream === event.stream) continue;
    const isApart = event.data.jobId && next.data.jobId && event.data.jobId !== next.data.jobId;
    const name = `${kindOf(event)} ↔ ${kindOf(next)}${isApart ? ', apart' : ''}`;
    yield { name, events: swapped(events, event, next) };
  }
}

const swapped = (events: Events, a: RecordedEvent, b: RecordedEvent): Events =>
  renumbered(events.map((event) => (event === a ? b : event === b ? a : event)));

/** Another UUID. */
const fresh = (id: string) => `${id.startsWith('0') ? 'f' : '0'}${id.slice(1)}`;

function* changedMembers(event: RecordedEvent, events: Events): Generator<[string, RecordedEvent]> {
  yield ['id', { ...event, id: fresh(event.id) }];
  yield ['created', { ...event, created: at(120_000) }];
  yield ['metadata', { ...event, metadata: {} }];
  for (const path of pathsOf(event.data)) {
    if (path[0] === 'v') continue;
    const others = events.filter(({ type }) => type === event.type).map(({ data }) => valueAt(data, path));
    const values = unlike(valueAt(event.data, path), [...others, ...GENERIC]);
    const readable = values
      .map((value) => ({ ...event, data: withValue(event.data, path, value) as JsonObject }))
      .filter((changed) => readEvent(changed) !== null);
    const isNull = (changed: RecordedEvent) => valueAt(changed.data, path) === null;
    for (const changed of readable.filter(isNull).slice(0, 1)) yield [`${path.join('.')}→null`, changed];
    for (const changed of readable.filter((one) => !isNull(one)).slice(0, LONG ? MAX_VALUES : 1))
      yield [path.join('.'), changed];
  }
}

const MAX_VALUES = 3;

/** Values of other shapes do not fit the schema, and are left out. */
const GENERIC: readonly Json[] = [
  null,
  true,
  false,
  7,
  OTHER_JOB_ID,
  hex('e'),
  `0x${hex('e')}`,
  commitment('e'),
  '7',
  at(120_000),
  'operator',
  'chain',
  'other',
  'DELETE',
  'failed',
  'body',
  'no',
  'demo',
  'execute/webhook',
  'compromised',
  'checkpoint',
  'recovery',
  'retention_over',
  'job_started',
  'cancelled',
  'low',
  'do_not_pay',
  [],
  [`payment-${hex('e')}`],
];

/** The names of all members that are no objects themselves, from the outermost. */
function pathsOf(value: Json | undefined, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [path];
  return Object.entries(value).flatMap(([name, inner]) => pathsOf(inner, [...path, name]));
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const valueAt = (value: Json | undefined, [name, ...rest]: readonly string[]): Json | undefined => {
  if (name === undefined) return value;
  return isObject(value) ? valueAt(value[name], rest) : undefined;
};

const withValue = (value: Json | undefined, [name, ...rest]: readonly string[], to: Json): Json =>
  name === undefined || !isObject(value) ? to : { ...value, [name]: withValue(value[name], rest, to) };

/** Each different value once. */
function unlike(own: Json | undefined, values: readonly (Json | undefined)[]): readonly Json[] {
  const texts = new Set([JSON.stringify(own)]);
  return values.filter((value): value is Json => {
    const text = JSON.stringify(value);
    if (value === undefined || texts.has(text)) return false;
    texts.add(text);
    return true;
  });
}
