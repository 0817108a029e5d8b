// What the test server's log says to an append before anything is stored: go on, it was stored before, or no.
import type { AppendOutcome, Expected, StoredEvent } from './eventstore-server-log.ts';

export type Stream = { readonly events: StoredEvent[]; first: number; soft: boolean; hard: boolean };

export type Asked = {
  readonly name: string;
  /** undefined: nothing was ever written to it. */
  readonly stream: Stream | undefined;
  readonly expected: Expected;
  /** Of the events to store, lower case. */
  readonly ids: readonly string[];
  /** Where an id was stored first since the start. */
  placeOf(id: string): StoredEvent | undefined;
};

/** null: store it. The order of the questions is the real server's. */
export function judge(asked: Asked): AppendOutcome | null {
  const { stream, expected } = asked;
  const current = stream === undefined ? -1n : BigInt(stream.events.length) - 1n;
  const wrong: AppendOutcome = { kind: 'wrong_version', actual: current < 0n ? null : current };
  if (stream?.hard === true) return { kind: 'deleted' };
  if (expected === 'stream_exists' && stream?.soft === true) return { kind: 'deleted' };
  if (expected === 'stream_exists' && current < 0n) return wrong;
  if (expected === 'any' || expected === 'stream_exists') return repeatAnywhere(asked, wrong);
  const revision = expected === 'no_stream' ? -1n : expected;
  if (revision > current) return wrong;
  return revision === current ? null : repeatAt(asked, revision, wrong);
}

/** With no expected revision, all ids must have been stored in this stream, wherever; some of them is a conflict. */
function repeatAnywhere({ name, stream, ids, placeOf }: Asked, wrong: AppendOutcome): AppendOutcome | null {
  const found = ids.map(placeOf);
  const isHere = found.map((event) => event?.stream === name);
  if (isHere[0] !== true) return null;
  const last = found.at(-1);
  return isHere.every((here) => here) && last !== undefined ? repeated(stream, last) : wrong;
}

/** With an expected revision, the ids must stand right behind it, in order. */
function repeatAt(
  { stream, expected, ids }: Asked,
  revision: bigint,
  wrong: AppendOutcome,
): AppendOutcome | null {
  const start = Number(revision) + 1;
  const there = ids.map((id, at) => stream?.events[start + at]?.id === id);
  const last = stream?.events[start + ids.length - 1];
  if (last !== undefined && there.length > 0 && there.every((same) => same)) return repeated(stream, last);
  if (there[0] !== true && expected === 'no_stream' && stream?.soft === true) return null;
  return wrong;
}

function repeated(stream: Stream | undefined, last: StoredEvent): AppendOutcome {
  const isReadable = stream !== undefined && !stream.soft && Number(last.revision) >= stream.first;
  return { kind: 'repeated', revision: last.revision, position: isReadable ? last.position : null };
}
