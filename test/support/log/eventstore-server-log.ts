// The transaction file of the test server, in memory: the stored records, their order, and the result of an append. The
// rules are those of a real 23.10.6, which passes the same tests (eventstore-server.test.ts).

export type ProposedEvent = {
  readonly id: string;
  readonly type: string;
  readonly json: boolean;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
};

export type StoredEvent = ProposedEvent & {
  readonly stream: string;
  readonly revision: bigint;
  /** Where the record begins, in bytes: commit and prepare position of the event. */
  readonly position: bigint;
  /** Where the next record may begin. */
  readonly end: bigint;
  /** 100 ns since 1970. */
  readonly created: bigint;
};

/** `any` is for other programs: each of their appends is new. */
export type Expected = bigint | 'any' | 'no_stream';

export type AppendOutcome =
  /** `position` is null where a repeat's event cannot be read any more. */
  | { readonly kind: 'stored' | 'repeated'; readonly revision: bigint; readonly position: bigint | null }
  | { readonly kind: 'wrong_version'; readonly actual: bigint | null }
  | { readonly kind: 'deleted' };

export type StreamContent =
  | { readonly kind: 'none' }
  | { readonly kind: 'deleted' }
  /** The index is the revision; events before `first` are truncated. */
  | { readonly kind: 'events'; readonly events: readonly StoredEvent[]; readonly first: number };

export type ServerLog = {
  /** In order of position. */
  readonly events: readonly StoredEvent[];
  /** Appends stored so far; repeats, deletions and system events do not count. */
  appends(): number;
  append(stream: string, expected: Expected, events: readonly ProposedEvent[]): AppendOutcome;
  /** `hard`: a tombstone; otherwise the stream does not exist until the next append. */
  remove(stream: string, expected: Expected, hard: boolean): AppendOutcome;
  stream(name: string): StreamContent;
  /** Index in `events` of the first event that begins at `position` or later. */
  indexAt(position: bigint): number;
  /** Called after each append; returns the function that removes it. */
  onAppend(listener: () => void): () => void;
  /** Writes the events that a node writes periodically: statistics and metadata of streams. */
  writeSystemEvents(count: number): void;
};

/** A record's size without its texts and bodies, and the position of a new database's first event. */
const RECORD_BYTES = 90n;
const FIRST_POSITION = 548n;
const TICKS_PER_MS = 10_000n;
/** `$tb` of a deleted stream, and the revision of a tombstone. */
const LAST_REVISION = 9_223_372_036_854_775_807n;

/** `backup`: what it contains from the beginning, from the first event of another log on. */
export function serverLog(backup: readonly StoredEvent[] = []): ServerLog {
  const events: StoredEvent[] = [];
  const streams = new Map<string, Stream>();
  const listeners = new Set<() => void>();
  let end = FIRST_POSITION;
  let appends = 0;

  function streamOf(name: string): Stream {
    const known = streams.get(name);
    if (known !== undefined) return known;
    const stream: Stream = { events: [], first: 0, soft: false, hard: false };
    streams.set(name, stream);
    return stream;
  }

  function store(name: string, proposed: ProposedEvent, revision: bigint): StoredEvent {
    const position = end;
    end += recordBytes(name, proposed);
    const id = proposed.id.toLowerCase();
    const created = BigInt(Date.now()) * TICKS_PER_MS;
    const stored = { ...proposed, id, stream: name, revision, position, end, created };
    events.push(stored);
    return stored;
  }

  function storeNext(name: string, proposed: ProposedEvent): StoredEvent {
    const stream = streamOf(name);
    const stored = store(name, proposed, BigInt(stream.events.length));
    stream.events.push(stored);
    return stored;
  }

  function storeSystem(stream: string, type: string, data: object): StoredEvent {
    return storeNext(stream, {
      id: crypto.randomUUID(),
      type,
      json: true,
      data: utf8(data),
      metadata: EMPTY,
    });
  }

  function notify(): void {
    for (const listener of [...listeners]) listener();
  }

  function append(name: string, expected: Expected, proposed: readonly ProposedEvent[]): AppendOutcome {
    const refused = refusal(name, expected, proposed);
    if (refused !== null) return refused;
    const stream = streamOf(name);
    const began = end;
    const first = stream.events.length;
    const last = proposed.map((event) => storeNext(name, event)).at(-1);
    // An append without events advances the position too.
    if (last === undefined) end += RECORD_BYTES;
    if (stream.soft) revive(name, stream, first);
    appends++;
    notify();
    return { kind: 'stored', revision: BigInt(stream.events.length - 1), position: last?.position ?? began };
  }

  function refusal(
    name: string,
    expected: Expected,
    proposed: readonly ProposedEvent[],
  ): AppendOutcome | null {
    const ids = proposed.map((event) => event.id.toLowerCase());
    return judge({ stream: streams.get(name), expected, ids });
  }

  function revive(name: string, stream: Stream, first: number): void {
    stream.soft = false;
    stream.first = first;
    storeSystem(`$$${name}`, '$metadata', { $tb: first });
  }

  function remove(name: string, expected: Expected, hard: boolean): AppendOutcome {
    const refused = refusal(name, expected, []);
    if (refused !== null) return refused;
    const stream = streamOf(name);
    if (!hard && stream.events.length === 0) return { kind: 'wrong_version', actual: null };
    const tombstone = {
      id: crypto.randomUUID(),
      type: '$streamDeleted',
      json: false,
      data: EMPTY,
      metadata: EMPTY,
    };
    const record = hard
      ? store(name, tombstone, LAST_REVISION)
      : storeSystem(`$$${name}`, '$metadata', { $tb: LAST_REVISION.toString() });
    if (hard) stream.hard = true;
    else stream.soft = true;
    notify();
    return { kind: 'stored', revision: record.revision, position: record.position };
  }

  if (backup.length === 0) storeSystem('$$$scavenges', '$metadata', { $maxAge: 2_592_000 });
  for (const event of backup) storeNext(event.stream, event);
  return {
    events,
    appends: () => appends,
    append,
    remove,
    stream: (name) => {
      const stream = streams.get(name);
      if (stream?.hard === true) return { kind: 'deleted' };
      if (stream === undefined || stream.soft || stream.events.length === 0) return { kind: 'none' };
      return { kind: 'events', events: stream.events, first: stream.first };
    },
    indexAt: (position) => firstIndex(events, (event) => event.position >= position),
    onAppend: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    writeSystemEvents: (count) => {
      for (let n = 0; n < count; n++) {
        if (n % 2 === 0) storeSystem('$stats-127.0.0.1:2113', '$statsCollected', { 'proc-mem': n });
        else storeSystem('$$$stats-127.0.0.1:2113', '$metadata', { $maxAge: 86_400 });
      }
      notify();
    },
  };
}

const EMPTY = new Uint8Array();

const utf8 = (data: object) => new TextEncoder().encode(JSON.stringify(data));

function recordBytes(stream: string, event: ProposedEvent): bigint {
  const texts = Buffer.byteLength(stream) + Buffer.byteLength(event.type);
  return RECORD_BYTES + BigInt(texts + event.data.length + event.metadata.length);
}

/** Index of the first item that passes, in a list where all after it pass too; the length where none does. */
function firstIndex<T>(items: readonly T[], passes: (item: T) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const item = items[middle];
    if (item !== undefined && passes(item)) high = middle;
    else low = middle + 1;
  }
  return low;
}

// The decision about an append before anything is stored: store it, report a repeat, or refuse it.
export type Stream = { readonly events: StoredEvent[]; first: number; soft: boolean; hard: boolean };

export type AppendCheck = {
  /** undefined: nothing was ever written to it. */
  readonly stream: Stream | undefined;
  readonly expected: Expected;
  /** Of the events to store, lower case. */
  readonly ids: readonly string[];
};

/** null: store it. The order of the checks is the real server's. */
export function judge(check: AppendCheck): AppendOutcome | null {
  const { stream, expected } = check;
  const current = stream === undefined ? -1n : BigInt(stream.events.length) - 1n;
  const wrong: AppendOutcome = { kind: 'wrong_version', actual: current < 0n ? null : current };
  if (stream?.hard === true) return { kind: 'deleted' };
  if (expected === 'any') return null;
  const revision = expected === 'no_stream' ? -1n : expected;
  if (revision > current) return wrong;
  return revision === current ? null : repeatAt(check, revision, wrong);
}

/** With an expected revision: a repeat if the ids follow it directly, in order. */
function repeatAt(
  { stream, expected, ids }: AppendCheck,
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
