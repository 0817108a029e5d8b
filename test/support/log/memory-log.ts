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
type StreamRows = {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly EventRow[];
};
type ReadOptions = NonNullable<Parameters<EventLog['readStream']>[1]>;

/** What all handles of a log share: its methods are the effects of their calls. */
export class MemoryEvents {
  readonly events: RecordedEvent[] = [];
  readonly streams = new Map<string, RecordedEvent[]>();
  readonly spoilt = new Map<RecordedEvent, Damage>();
  /** Called after each append. */
  readonly listeners = new Set<() => void>();
  readonly #now: () => number;

  /** `now`: Unix ms, for `created`. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** All or none. */
  appendTogether(appends: readonly StreamRows[]): readonly Appended[] {
    const stores = appends.map((append) => this.#judge(append));
    return stores.map((store) => store());
  }

  /** What stores it, or answers as for the first call. */
  #judge({ stream, expected, events }: StreamRows): () => Appended {
    const past = this.streams.get(stream) ?? [];
    const start = expected === 'no_stream' ? 0 : Number(expected) + 1;
    const last = past[start + events.length - 1];
    if (events.every(({ id }, i) => past[start + i]?.id === id) && last !== undefined) {
      this.repeated();
      return () => ({ nextRevision: last.revision, position: last.position });
    }
    const actual = past.at(-1)?.revision ?? null;
    if ((actual ?? 'no_stream') !== expected) throw new WrongExpectedVersion(stream, expected, actual);
    return () => this.#store(stream, past, events);
  }

  #store(stream: string, past: RecordedEvent[], rows: readonly EventRow[]): Appended {
    const created = new Date(this.#now()).toISOString();
    const stored = rows.map(
      ({ id, type, data, metadata }, i): RecordedEvent => ({
        stream,
        revision: BigInt(past.length + i),
        position: String(this.events.length + 1 + i).padStart(20, '0'),
        id,
        type,
        data: JSON.parse(data),
        metadata: JSON.parse(metadata),
        created,
      }),
    );
    const newest = stored.at(-1);
    if (newest === undefined) throw new Error('an append stores at least one event');
    past.push(...stored);
    this.events.push(...stored);
    this.streams.set(stream, past);
    this.stored(stored);
    this.wake();
    return { nextRevision: newest.revision, position: newest.position };
  }

  protected stored(_events: readonly RecordedEvent[]): void {}
  protected repeated(): void {}

  wake(): void {
    for (const listener of [...this.listeners]) listener();
  }

  read(stream: string, { from, direction = 'forwards', max = Number.MAX_SAFE_INTEGER }: ReadOptions = {}) {
    const past = this.streams.get(stream) ?? [];
    if (direction === 'forwards') return past.slice(Number(from ?? 0n)).slice(0, max);
    const end = from === undefined ? past.length : Number(from) + 1;
    return past.slice(0, end).reverse().slice(0, max);
  }

  /** A position is the number of the event, counted from 1. */
  after(after: string | null, max: number, types?: readonly string[]): RecordedEvent[] {
    const found: RecordedEvent[] = [];
    for (let i = Number(after ?? 0); i < this.events.length && found.length < max; i++) {
      const event = this.events[i];
      if (event !== undefined && (types?.includes(event.type) ?? true)) found.push(event);
    }
    return found;
  }

  /** A backup is restored: the events after the first `count` are gone. */
  cut(count: number): void {
    this.events.splice(count);
    for (const [stream, past] of this.streams) {
      const left = past.filter(({ position }) => Number(position) <= count);
      if (left.length === 0) this.streams.delete(stream);
      else this.streams.set(stream, left);
    }
  }
}

export function memoryLog(options: MemoryLogOptions = {}): MemoryLog {
  return openHandle(new MemoryEvents(options.now ?? Date.now));
}

function openHandle(storage: MemoryEvents): MemoryLog {
  const { events: all, spoilt, listeners } = storage;
  const state = { away: false, loseAnswer: false, closed: false, appends: 0, interruptions: 0 };

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

  async function appendTogether(given: readonly StreamAppend[]): Promise<readonly Appended[]> {
    // Read at the call: what the caller changes later is not stored, and an append under way outlives `close`.
    const appends = given.map((append) => ({ ...append, events: append.events.map(eventRow) }));
    if (state.away || state.closed) throw new EventLogUnavailable();
    await Promise.resolve();
    state.appends++;
    const appended = storage.appendTogether(appends);
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
      if (!away) storage.wake();
    },
    restore: (count) => storage.cut(count),
    loseNextAnswer() {
      state.loseAnswer = true;
    },
    async append(stream, expected, events) {
      const [appended] = await appendTogether([{ stream, expected, events }]);
      return appended ?? Promise.reject(new Error('an append has a result'));
    },
    appendTogether,
    async readStream(stream, options) {
      await reach();
      return demandWhole(storage.read(stream, options));
    },
    async readAll({ after, max, types }) {
      await reach();
      return demandWhole(storage.after(after, max, types));
    },
    async *subscribeAll({ after, signal }): AsyncGenerator<LiveMessage> {
      let last = after;
      let announced = false;
      let { interruptions } = state;
      const onAbort = () => storage.wake();
      signal.addEventListener('abort', onAbort, { once: true });
      try {
        while (!signal.aborted) {
          if (state.closed) throw new EventLogUnavailable();
          if (!state.away && interruptions !== state.interruptions) {
            interruptions = state.interruptions;
            yield { kind: 'resumed' };
          }
          const batch = state.away ? [] : storage.after(last, 512);
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
          const { promise: woken, resolve } = Promise.withResolvers<void>();
          listeners.add(resolve);
          await woken;
          listeners.delete(resolve);
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
      const events = storage.after(after, max);
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
      storage.wake();
    },
    again: () => openHandle(storage),
  };
}
