// What one append means on the server. With a revision or `no_stream` the server itself knows repeats, by the ids that
// stand at that place. With `any` and `stream_exists` it remembers ids for a while only, and looks at the first one
// only: there the stream is searched here, and the append goes to the revision that it was found at.

import type { CheckedEvent } from '#src/adapters/event-log/append-arguments.ts';
import {
  type Appended,
  EventLogUnavailable,
  type ExpectedRevision,
  WrongExpectedVersion,
} from '#src/ports/event-log.ts';
import { type EventStoreConnection, Refusal } from './connection.ts';
import { appendRequests, positionText } from './messages.ts';
import { LAST_REVISION, type LogReader, PAGE_EVENTS } from './read.ts';

export type AppendCall = {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly CheckedEvent[];
};

type Place = { readonly id: string; readonly revision: bigint; readonly position: string };

/** `timeLimitMs`: for the search and its appends together, where others append to the stream meanwhile. */
export function eventStoreAppend(
  connection: EventStoreConnection,
  reader: LogReader,
  timeLimitMs: number,
): (call: AppendCall) => Promise<Appended> {
  /** Throws `WrongExpectedVersion`; RangeError for what the server takes from nobody, however often. */
  async function appendAt(call: AppendCall, expected: bigint | 'no_stream'): Promise<Appended> {
    const { stream, events } = call;
    const wrong = (actual: bigint | null) => new WrongExpectedVersion(stream, call.expected, actual);
    // The server's revisions end there; no stream is at its last.
    const sent = expected !== 'no_stream' && expected >= LAST_REVISION ? LAST_REVISION - 1n : expected;
    const answer = await connection.append(appendRequests(stream, sent, events)).catch((error: unknown) => {
      if (!(error instanceof Refusal)) throw error;
      // A stream deleted for ever stands at the last of all revisions.
      if (error.reason === 'stream-deleted') throw wrong(LAST_REVISION);
      throw new RangeError('the events of one append are larger than the event store takes', {
        cause: error,
      });
    });
    const refused = answer.getWrongExpectedVersion();
    if (refused !== undefined) {
      throw wrong(refused.hasCurrentRevision() ? BigInt(refused.getCurrentRevision()) : null);
    }
    const stored = answer.getSuccess();
    if (stored?.hasCurrentRevision() !== true)
      throw new EventLogUnavailable({ cause: new Error('no revision') });
    const nextRevision = BigInt(stored.getCurrentRevision());
    const position = stored.getPosition();
    if (position === undefined) return { nextRevision, position: await positionAt(stream, nextRevision) };
    return {
      nextRevision,
      position: positionText(position.getCommitPosition(), position.getPreparePosition()),
    };
  }

  /** A server that knows a repeat before all its nodes do answers without a position. */
  async function positionAt(stream: string, revision: bigint): Promise<string> {
    const { events } = await reader.streamPage(stream, revision, 'forwards', 1);
    const [event] = events;
    if (event?.revision === revision) return event.position;
    throw new EventLogUnavailable({ cause: new Error('stored, but not to be read yet') });
  }

  /** The stream's last revision, and where in it these events stand. */
  async function search({ stream, events }: AppendCall): Promise<{ last: bigint | null; found: Place[] }> {
    const ids = new Set(events.map((event) => event.id));
    const found: Place[] = [];
    let last: bigint | null = null;
    for (let next: bigint | null = 0n; next !== null; ) {
      const page = await reader.streamPage(stream, next, 'forwards', PAGE_EVENTS);
      found.push(...page.events.filter((event) => ids.has(event.id)));
      // Also one that is shown to nobody: the next append follows it.
      last = page.last ?? last;
      next = page.next;
    }
    return { last, found };
  }

  async function appendAnywhere(call: AppendCall): Promise<Appended> {
    const { stream, expected, events } = call;
    for (const since = performance.now(); performance.now() - since < timeLimitMs; ) {
      const { last, found } = await search(call);
      const wrong = () => new WrongExpectedVersion(stream, expected, last);
      if (last === null && expected === 'stream_exists') throw wrong();
      if (found.length > 0) return repeatOf(found, events) ?? fail(wrong());
      try {
        return await appendAt(call, last ?? 'no_stream');
      } catch (error) {
        // Others were first: their events are searched, too.
        if (!(error instanceof WrongExpectedVersion) || error.actual === LAST_REVISION) throw error;
      }
    }
    throw new EventLogUnavailable({ cause: new Error('others append to the stream all the time') });
  }

  return (call) => {
    const { expected } = call;
    return expected === 'any' || expected === 'stream_exists'
      ? appendAnywhere(call)
      : appendAt(call, expected);
  };
}

/** The first call's answer, where `found` are exactly these events, one after the other. */
function repeatOf(found: readonly Place[], events: readonly CheckedEvent[]): Appended | null {
  const first = found[0]?.revision ?? 0n;
  const same = events.every(({ id }, i) => found[i]?.id === id && found[i]?.revision === first + BigInt(i));
  const last = found.at(-1);
  if (!same || last === undefined || found.length !== events.length) return null;
  return { nextRevision: last.revision, position: last.position };
}

function fail(error: Error): never {
  throw error;
}
