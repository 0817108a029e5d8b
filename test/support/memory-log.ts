// An event log in memory, true to the port: revisions, idempotent repeats, global order, live subscriptions.
// It leaves durability to the real adapters, and adds switches for what can go wrong.
import { eventRow } from '#src/adapters/event-log/sqlite/append.ts';
import type { Damage } from '#src/domain/damage.ts';
import {
  type Appended,
  EventDamaged,
  type EventLog,
  EventLogUnavailable,
  type ExpectedRevision,
  type LiveMessage,
  type RecordedEvent,
  type StreamAppend,
  WrongExpectedVersion,
} from '#src/ports/event-log.ts';
import type { EventScan } from '#src/ports/event-scan.ts';

export type MemoryLog = EventLog &
  EventScan & {
    /** Every recorded event in global order. */
    readonly events: readonly RecordedEvent[];
    /** While away every call throws `EventLogUnavailable` and subscriptions stand still, as the port says. */
    setAway(away: boolean): void;
    /** Replaces the events by the first `count` of them: a backup is restored. Ends with `setAway(false)`, as a restart does. */
    restore(count: number): void;
    /** The next append is stored, but its answer is lost: the caller sees `EventLogUnavailable`. */
    loseNextAnswer(): void;
    /** The event cannot be read as it was written any more. */
    spoil(event: RecordedEvent): void;
    /** Calls of `append` that reached the log. */
    readonly appends: number;
    /** Another handle on the same events, as another process has one. */
    again(): MemoryLog;
  };

export type MemoryLogOptions = {
  /** `created` of stored events, ms since the epoch; the wall clock where absent. */
  readonly now?: () => number;
};

type EventRow = ReturnType<typeof eventRow>;

const positionOf = (index: number) => String(index).padStart(20, '0');

type Storage = {
  readonly all: RecordedEvent[];
  readonly streams: Map<string, RecordedEvent[]>;
  readonly wakers: Set<() => void>;
  readonly spoilt: Map<RecordedEvent, Damage>;
};

export function memoryLog(options: MemoryLogOptions = {}): MemoryLog {
  return openHandle(options.now ?? Date.now, {
    all: [],
    streams: new Map(),
    wakers: new Set(),
    spoilt: new Map(),
  });
}

function openHandle(now: () => number, storage: Storage): MemoryLog {
  const { all, streams, wakers, spoilt } = storage;
  const state = { away: false, loseAnswer: false, closed: false, appends: 0, interruptions: 0 };

  const wake = () => {
    for (const resolve of wakers) resolve();
    wakers.clear();
  };
  const reach = async () => {
    await Promise.resolve();
    if (state.away || state.closed) throw new EventLogUnavailable();
  };
  const demandWhole = (events: readonly RecordedEvent[]) => {
    for (const event of events) {
      const damage = spoilt.get(event);
      if (damage !== undefined) throw new EventDamaged(damage);
    }
    return [...events];
  };
  const readAfter = (after: string | null, max: number, types?: readonly string[]) => {
    const found: RecordedEvent[] = [];
    for (let i = firstAfter(all, after); i < all.length && found.length < max; i++) {
      const event = all[i];
      if (event !== undefined && (types?.includes(event.type) ?? true)) found.push(event);
    }
    return found;
  };
  const store = (stream: string, past: RecordedEvent[], events: readonly EventRow[]): Appended => {
    const created = new Date(now()).toISOString();
    for (const { id, type, data, metadata } of events) {
      const copy = { data: JSON.parse(data), metadata: JSON.parse(metadata) };
      const place = { revision: BigInt(past.length), position: positionOf(all.length + 1) };
      const recorded: RecordedEvent = { stream, ...place, id, type, ...copy, created };
      past.push(recorded);
      all.push(recorded);
    }
    streams.set(stream, past);
    wake();
    return answerFor(past, past.length - 1);
  };

  async function appendTogether(given: readonly StreamAppend[]): Promise<Appended[]> {
    // Read at the call: what the caller changes later is not stored, and an append under way outlives `close`.
    const appends = given.map((one) => ({ ...one, events: one.events.map(eventRow) }));
    if (state.away || state.closed) throw new EventLogUnavailable();
    await Promise.resolve();
    state.appends++;
    const judged = appends.map(({ stream, expected, events }) => {
      const past = streams.get(stream) ?? [];
      const answer = earlierAnswer(past, expected, events);
      if (answer === null && (past.at(-1)?.revision ?? 'no_stream') !== expected)
        throw new WrongExpectedVersion(stream, expected, past.at(-1)?.revision ?? null);
      return { stream, past, events, answer };
    });
    const appended = judged.map(({ stream, past, events, answer }) => answer ?? store(stream, past, events));
    if (!state.loseAnswer) return appended;
    state.loseAnswer = false;
    throw new EventLogUnavailable({ cause: new Error('the answer was lost') });
  }

  return {
    events: all,
    get appends() {
      return state.appends;
    },
    setAway(away) {
      if (away && !state.away) state.interruptions++;
      state.away = away;
      if (!away) wake();
    },
    restore(count) {
      all.splice(count);
      for (const [stream, past] of streams) {
        const left = past.filter((event) => all.includes(event));
        if (left.length === 0) streams.delete(stream);
        else streams.set(stream, left);
      }
    },
    loseNextAnswer() {
      state.loseAnswer = true;
    },
    async append(stream, expected, events) {
      const [appended] = await appendTogether([{ stream, expected, events }]);
      return appended ?? Promise.reject(new Error('an append has a result'));
    },
    appendTogether,
    async readStream(stream, { from, direction = 'forwards', max = Number.MAX_SAFE_INTEGER } = {}) {
      await reach();
      const past = streams.get(stream) ?? [];
      if (direction === 'forwards') return demandWhole(past.slice(Number(from ?? 0n)).slice(0, max));
      const end = from === undefined ? past.length : Number(from) + 1;
      return demandWhole(past.slice(0, end).reverse().slice(0, max));
    },
    async readAll({ after, max, types }) {
      await reach();
      return demandWhole(readAfter(after, max, types));
    },
    async *subscribeAll({ after, signal }): AsyncGenerator<LiveMessage> {
      let last = after;
      let announced = false;
      let { interruptions } = state;
      const onAbort = () => wake();
      signal.addEventListener('abort', onAbort, { once: true });
      try {
        while (!signal.aborted) {
          if (state.closed) throw new EventLogUnavailable();
          if (!state.away && interruptions !== state.interruptions) {
            interruptions = state.interruptions;
            yield { kind: 'resumed' };
          }
          const batch = state.away ? [] : readAfter(last, 512);
          for (const event of batch) {
            if (signal.aborted) return;
            demandWhole([event]);
            last = event.position;
            yield { kind: 'event', event };
          }
          if (signal.aborted) return;
          if (batch.length > 0) continue;
          if (!announced && !state.away) {
            announced = true;
            yield { kind: 'caught_up' };
            continue;
          }
          await new Promise<void>((resolve) => wakers.add(resolve));
        }
      } finally {
        signal.removeEventListener('abort', onAbort);
      }
    },
    async head() {
      await reach();
      return all.at(-1)?.position ?? null;
    },
    async health() {
      const [first] = spoilt.values();
      const damaged = first === undefined ? {} : { damaged: { count: spoilt.size, first } };
      if (state.away || state.closed) return { ok: false, problem: 'unavailable', ...damaged };
      return { ok: true, ...damaged };
    },
    async lastPosition() {
      await reach();
      return all.at(-1)?.position ?? null;
    },
    async scan({ after, max }) {
      await reach();
      const events = readAfter(after, max);
      const found = events.map((event) => {
        const damage = spoilt.get(event);
        return damage === undefined
          ? { kind: 'event' as const, event }
          : { kind: 'damaged' as const, damage };
      });
      const last = events.at(-1);
      const next = last === undefined || last === all.at(-1) ? null : last.position;
      return { found, next, unchecked: 0, unindexed: [] };
    },
    checkFiles: async () => [],
    spoil({ position }) {
      const event = all.find((stored) => stored.position === position);
      if (event === undefined) throw new Error('there is no such event');
      const { stream, revision } = event;
      const place = { from: position, to: position, stream, revision: String(revision) };
      spoilt.set(event, { ...place, problem: 'changed' });
    },
    async close() {
      state.closed = true;
      wake();
    },
    again: () => openHandle(now, storage),
  };
}

function answerFor(past: readonly RecordedEvent[], index: number): Appended {
  const last = past[index];
  if (last === undefined) throw new Error('an append stores at least one event');
  return { nextRevision: last.revision, position: last.position };
}

/** The answer of the first call, where these very events stand at the place that is asked for. */
function earlierAnswer(
  past: readonly RecordedEvent[],
  expected: ExpectedRevision,
  events: readonly EventRow[],
): Appended | null {
  const start = expected === 'no_stream' ? 0 : Number(expected) + 1;
  const same = events.every((event, i) => past[start + i]?.id === event.id);
  return same ? answerFor(past, start + events.length - 1) : null;
}

/** Index of the first event after a position: positions compare as text. */
function firstAfter(all: readonly RecordedEvent[], after: string | null): number {
  if (after === null) return 0;
  let low = 0;
  let high = all.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((all[middle]?.position ?? '') <= after) low = middle + 1;
    else high = middle;
  }
  return low;
}
