// The server's messages, as generated for its client: requests are written here, answers are read here.
// The client's own methods are not used: its read of all events takes no filter and no limit, its appends share one
// stream whose table of answers is the whole process's, so that one broken stream throws where nobody catches.
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams, {
  type AppendReq,
  type ReadReq,
  type ReadResp,
} from '@eventstore/db-client/generated/streams_pb.js';
import type { CheckedEvent } from '#src/adapters/event-log/append-arguments.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';

export type Direction = 'forwards' | 'backwards';
export type ReadFrom = string | 'start' | 'end';

/** An event in the log's order. `event` null: the server's own, or no JSON; subscribers are not shown it. */
export type Placed = {
  readonly position: string;
  readonly revision: bigint;
  readonly event: RecordedEvent | null;
};

const JSON_TYPE = 'application/json';
const utf8 = new TextEncoder();
const text = new TextDecoder('utf-8', { ignoreBOM: true });

/** An append is one call: its options, then each event. */
export function appendRequests(
  stream: string,
  expected: bigint | 'no_stream',
  events: readonly CheckedEvent[],
): AppendReq[] {
  const options = new streams.AppendReq.Options();
  options.setStreamIdentifier(streamIdentifier(stream));
  if (expected === 'no_stream') options.setNoStream(new shared.Empty());
  else options.setRevision(String(expected));
  const first = new streams.AppendReq();
  first.setOptions(options);
  return [first, ...events.map(proposed)];
}

function proposed({ id, type, data, metadata }: CheckedEvent): AppendReq {
  const message = new streams.AppendReq.ProposedMessage();
  const uuid = new shared.UUID();
  uuid.setString(id);
  message.setId(uuid);
  message.getMetadataMap().set('type', type).set('content-type', JSON_TYPE);
  message.setData(utf8.encode(data));
  message.setCustomMetadata(utf8.encode(metadata));
  const request = new streams.AppendReq();
  request.setProposedMessage(message);
  return request;
}

export function streamRequest(
  stream: string,
  from: bigint | 'end',
  direction: Direction,
  count: number,
): ReadReq {
  const place = new streams.ReadReq.Options.StreamOptions();
  place.setStreamIdentifier(streamIdentifier(stream));
  if (from === 'end') place.setEnd(new shared.Empty());
  else place.setRevision(String(from));
  const options = readOptions(direction);
  options.setStream(place);
  options.setCount(String(count));
  return readRequest(options);
}

/** `from` is inclusive forwards, and exclusive backwards, as the server has it. */
export function allRequest(from: ReadFrom, direction: Direction, count: number): ReadReq {
  const options = readOptions(direction);
  options.setAll(placeInAll(from));
  options.setCount(String(count));
  return readRequest(options);
}

/** All events from now on, without end. */
export function liveRequest(): ReadReq {
  const options = readOptions('forwards');
  options.setAll(placeInAll('end'));
  options.setSubscription(new streams.ReadReq.Options.SubscriptionOptions());
  return readRequest(options);
}

function placeInAll(from: ReadFrom): ReadReq.Options.AllOptions {
  const all = new streams.ReadReq.Options.AllOptions();
  if (from === 'start') all.setStart(new shared.Empty());
  else if (from === 'end') all.setEnd(new shared.Empty());
  else {
    const { commit, prepare } = numbersOf(from);
    const position = new streams.ReadReq.Options.Position();
    position.setCommitPosition(commit);
    position.setPreparePosition(prepare);
    all.setPosition(position);
  }
  return all;
}

function readOptions(direction: Direction): ReadReq.Options {
  const options = new streams.ReadReq.Options();
  const { FORWARDS, BACKWARDS } = streams.ReadReq.Options.ReadDirection;
  options.setReadDirection(direction === 'forwards' ? FORWARDS : BACKWARDS);
  options.setResolveLinks(false);
  options.setNoFilter(new shared.Empty());
  const ids = new streams.ReadReq.Options.UUIDOption();
  ids.setString(new shared.Empty());
  options.setUuidOption(ids);
  return options;
}

function readRequest(options: ReadReq.Options): ReadReq {
  const request = new streams.ReadReq();
  request.setOptions(options);
  return request;
}

function streamIdentifier(stream: string) {
  const identifier = new shared.StreamIdentifier();
  identifier.setStreamName(utf8.encode(stream));
  return identifier;
}

const DIGITS = 20;
const POSITION = /^\d{20}-\d{20}$/;

/** Both numbers in a fixed width: positions compare as text. */
export const positionText = (commit: string, prepare: string): string =>
  `${commit.padStart(DIGITS, '0')}-${prepare.padStart(DIGITS, '0')}`;

export const isPosition = (position: string): boolean => POSITION.test(position);

function numbersOf(position: string): { commit: string; prepare: string } {
  const [commit = '', prepare = ''] = position.split('-').map((digits) => String(BigInt(digits)));
  return { commit, prepare };
}

/** The event in one answer to a read; null where the answer holds none. */
export function placedIn(response: ReadResp): Placed | null {
  const recorded = response.getEvent()?.getEvent();
  if (recorded === undefined) return null;
  const position = positionText(recorded.getCommitPosition(), recorded.getPreparePosition());
  const revision = BigInt(recorded.getStreamRevision());
  const facts = recorded.getMetadataMap();
  const type = facts.get('type') ?? '';
  const stream = text.decode(recorded.getStreamIdentifier()?.getStreamName_asU8());
  const hidden = type.startsWith('$') || stream.startsWith('$') || facts.get('content-type') !== JSON_TYPE;
  const data = hidden ? null : object(recorded.getData_asU8());
  if (data === null) return { position, revision, event: null };
  const event: RecordedEvent = {
    stream,
    revision,
    position,
    id: recorded.getId()?.getString() ?? '',
    type,
    data,
    metadata: object(recorded.getCustomMetadata_asU8()) ?? {},
    // Ticks of 100 ns since the Unix epoch.
    created: new Date(Number(BigInt(facts.get('created') ?? '0') / 10_000n)).toISOString(),
  };
  return { position, revision, event };
}

/** null: no JSON object, so another application's. */
function object(bytes: Uint8Array): RecordedEvent['data'] | null {
  try {
    const value: unknown = JSON.parse(text.decode(bytes));
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** What JSON.parse gave is JSON. */
function isObject(value: unknown): value is RecordedEvent['data'] {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
