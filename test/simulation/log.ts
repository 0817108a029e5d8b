// The event log of a deployment: one storage, and the port as each process reaches it, with lost requests, lost and late
// acknowledgements, outages, and subscriptions that are interrupted or end.
import { eventRow } from '#src/adapters/event-log/sqlite/append.ts';
import {
  type Appended,
  type EventLog,
  EventLogUnavailable,
  type ExpectedRevision,
  type LiveMessage,
  type RecordedEvent,
  type StreamAppend,
  WrongExpectedVersion,
} from '#src/ports/event-log.ts';
import { ANSWERED, EPOCH, type Fate, type Host } from './host.ts';
import type { Trace } from './trace.ts';

const positionOf = (index: number) => String(index).padStart(12, '0');

/** The storage: its methods are the effects of calls. */
export class LogStore {
  readonly events: RecordedEvent[] = [];
  readonly streams = new Map<string, RecordedEvent[]>();
  /** How many events there were after each append. */
  readonly ends: number[] = [];
  /** How often a backup was restored. */
  restored = 0;
  /** Called after each append. */
  readonly listeners = new Set<() => void>();
  onStored: (events: readonly RecordedEvent[]) => void = () => undefined;
  readonly #trace: Trace;
  readonly #now: () => number;
  /** It stores appends together, as the embedded log. */
  readonly canTogether: boolean;

  constructor(trace: Trace, now: () => number, canTogether: boolean) {
    this.canTogether = canTogether;
    this.#trace = trace;
    this.#now = now;
  }

  append(stream: string, expected: ExpectedRevision, events: StreamRows['events']): Appended {
    const [appended] = this.appendTogether([{ stream, expected, events }]);
    return appended ?? answerFor(undefined);
  }

  appendTogether(appends: readonly StreamRows[]): readonly Appended[] {
    const stores = appends.map((one) => this.#judge(one));
    if (stores.length > 1) this.#trace.reached('appends stored together');
    return stores.map((store) => store());
  }

  /** What stores it, or answers for the first call. */
  #judge({ stream, expected, events }: StreamRows): () => Appended {
    const past = this.streams.get(stream) ?? [];
    const start = expected === 'no_stream' ? 0 : Number(expected) + 1;
    if (events.every(({ id }, i) => past[start + i]?.id === id)) {
      this.#trace.reached('append repeated by its ids');
      return () => answerFor(past[start + events.length - 1]);
    }
    const actual = past.at(-1)?.revision ?? null;
    if ((actual ?? 'no_stream') !== expected) {
      this.#trace.reached('append conflict');
      throw new WrongExpectedVersion(stream, expected, actual);
    }
    return () => this.#store(stream, past, events);
  }

  #store(stream: string, past: RecordedEvent[], events: StreamRows['events']): Appended {
    const created = new Date(EPOCH + this.#now()).toISOString();
    const stored = events.map(
      ({ id, type, data, metadata }, i): RecordedEvent => ({
        stream,
        revision: BigInt(past.length + i),
        position: positionOf(this.events.length + 1 + i),
        id,
        type,
        data: JSON.parse(data),
        metadata: JSON.parse(metadata),
        created,
      }),
    );
    past.push(...stored);
    this.events.push(...stored);
    this.ends.push(this.events.length);
    this.streams.set(stream, past);
    const types = stored.map(({ type }) => type);
    this.#trace.note(`the log stores ${types.join(', ')} in ${shortened(stream)}`);
    for (const type of types) this.#trace.reached(`event ${type}`);
    this.onStored(stored);
    for (const listener of [...this.listeners]) listener();
    return answerFor(stored.at(-1));
  }

  read(stream: string, { from, direction = 'forwards', max = Number.MAX_SAFE_INTEGER }: ReadOptions = {}) {
    const past = this.streams.get(stream) ?? [];
    if (direction === 'forwards') return past.slice(Number(from ?? 0n)).slice(0, max);
    const end = from === undefined ? past.length : Number(from) + 1;
    return past.slice(0, end).reverse().slice(0, max);
  }

  after(after: string | null, max: number, types?: readonly string[]): RecordedEvent[] {
    const found: RecordedEvent[] = [];
    for (let i = after === null ? 0 : Number(after); i < this.events.length && found.length < max; i++) {
      const event = this.events[i];
      if (event !== undefined && (types?.includes(event.type) ?? true)) found.push(event);
    }
    return found;
  }

  /** A backup is restored: the events after these are gone. */
  cut(count: number): void {
    this.restored++;
    this.events.splice(count);
    for (const [stream, past] of this.streams) {
      const left = past.filter(({ position }) => Number(position) <= count);
      if (left.length === 0) this.streams.delete(stream);
      else this.streams.set(stream, left);
    }
  }
}

type StreamRows = {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly ReturnType<typeof eventRow>[];
};

type ReadOptions = NonNullable<Parameters<EventLog['readStream']>[1]>;

function answerFor(last: RecordedEvent | undefined): Appended {
  if (last === undefined) throw new Error('an append stores at least one event');
  return { nextRevision: last.revision, position: last.position };
}

export const shortened = (stream: string): string =>
  stream.replace(/-([0-9a-zA-Z_]{10})[0-9a-zA-Z]+$/, '-$1…');

/** Probabilities of one call. */
export type LogWeather = {
  /** The request is lost. */
  lost: number;
  /** It is stored, and its answer is lost. */
  unanswered: number;
  /** It is stored after its caller got an error. */
  late: number;
};

/** How a process reaches the log. */
export type LogAccess = {
  readonly log: EventLog;
  readonly weather: LogWeather;
  /** Virtual ms until which no call is answered; calls throw after a time. */
  away(ms: number): void;
  /** The outage in hand ends. */
  restored(): void;
  /** The subscriptions end with an error, as a restarted server ends them. */
  dropSubscriptions(): void;
};

const unavailable = () => new EventLogUnavailable();

export function logAccess(store: LogStore, host: Host, weather: LogWeather): LogAccess {
  let awayUntil = 0;
  let interruptions = 0;
  let drops = 0;
  const { scheduler, random, trace } = host;
  const isAway = () => scheduler.now < awayUntil;

  function fateOf<T>(isAppend: boolean): Fate<T> {
    const afterMs = random.between(5, 2500);
    if (isAway()) {
      trace.reached('log call during an outage');
      // What was sent at the beginning of an outage may still arrive.
      return { kind: 'lost', afterMs, error: unavailable, effect: isAppend && random.chance(0.05) };
    }
    const drawn = random.next();
    if (drawn < weather.lost) return { kind: 'lost', afterMs, error: unavailable, effect: false };
    if (!isAppend || drawn > weather.lost + weather.unanswered + weather.late) return ANSWERED;
    if (drawn < weather.lost + weather.unanswered) {
      trace.reached('append with a lost answer');
      return { kind: 'lost', afterMs, error: unavailable, effect: true };
    }
    trace.reached('append that is stored late');
    return {
      kind: 'late',
      afterMs,
      error: unavailable,
      lateMs: random.between(1, random.chance(0.2) ? 90_000 : 4000),
    };
  }
  /** An outage also loses the answers that are on their way. */
  async function call<T>(what: string | null, effect: () => T, isAppend: boolean): Promise<T> {
    const before = interruptions;
    const answer = await host.call<T>(what, effect, { fate: fateOf<T>(isAppend), counts: isAppend });
    if (before === interruptions || !isAway()) return answer;
    await host.clock.sleep(random.between(5, 2500));
    trace.reached('answer lost by an outage');
    throw unavailable();
  }
  const read = <T>(effect: () => T) => call<T>(null, effect, false);

  async function* subscribe({
    after,
    signal,
  }: Parameters<EventLog['subscribeAll']>[0]): AsyncGenerator<LiveMessage> {
    let last = after;
    let isAnnounced = false;
    const [seen, dropped] = [interruptions, drops];
    let isResumed = seen === interruptions;
    while (!signal.aborted) {
      if (drops !== dropped) throw new EventLogUnavailable({}, 'the subscription was dropped');
      if (isAway()) {
        await host.clock.sleep(awayUntil - scheduler.now + random.between(0, 500), signal);
        continue;
      }
      if (seen !== interruptions && isResumed) {
        isResumed = false;
        yield { kind: 'resumed' };
        continue;
      }
      // A few at a time: batches of projections are cut anywhere.
      const max = random.int(1, 8);
      const batch = await host.call(null, () => store.after(last, max));
      for (const event of batch) {
        if (signal.aborted) return;
        last = event.position;
        yield { kind: 'event', event };
      }
      if (batch.length > 0) continue;
      if (!isAnnounced) {
        isAnnounced = true;
        yield { kind: 'caught_up' };
        continue;
      }
      await changed(signal, last);
    }
  }

  /** The log has grown, or the subscription is disturbed. */
  function changed(
    signal: Parameters<EventLog['subscribeAll']>[0]['signal'],
    last: string | null,
  ): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        store.listeners.delete(end);
        wakers.delete(end);
        signal.removeEventListener('abort', end);
        scheduler.after(random.between(0, 20), host, resolve);
      };
      store.listeners.add(end);
      wakers.add(end);
      signal.addEventListener('abort', end, { once: true });
      if (signal.aborted || store.after(last, 1).length > 0) end();
    });
  }
  const wakers = new Set<() => void>();
  const disturb = () => {
    for (const wake of [...wakers]) wake();
  };

  function appendTogether(given: readonly StreamAppend[]): Promise<readonly Appended[]> {
    const rows = given.map((one) => ({ ...one, events: one.events.map(eventRow) }));
    const types = given.flatMap(({ events }) => events.map(({ type }) => type));
    const { restored } = store;
    // A request to the server that was replaced does not reach the one with the backup.
    const effect = () => {
      if (store.restored !== restored) throw unavailable();
      return store.appendTogether(rows);
    };
    return call(`an append of ${types.join(', ')}`, effect, true);
  }

  const log: EventLog = {
    async append(stream, expected, events) {
      const [appended] = await appendTogether([{ stream, expected, events }]);
      return appended ?? Promise.reject(new Error('an append has a result'));
    },
    appendTogether: store.canTogether ? appendTogether : null,
    readStream: (stream, options) => read(() => store.read(stream, options)),
    readAll: ({ after, max, types }) => read(() => store.after(after, max, types)),
    subscribeAll: subscribe,
    head: () => read(() => store.events.at(-1)?.position ?? null),
    health: () =>
      host.call(null, () => ({ ok: !isAway(), ...(isAway() && { problem: 'unavailable' }) }) as never),
    close: async () => undefined,
  };
  return {
    log,
    weather,
    away(ms) {
      awayUntil = Math.max(awayUntil, scheduler.now + ms);
      host.disturbedUntil = Math.max(host.disturbedUntil, awayUntil);
      interruptions++;
      trace.note(`the event log is out of reach of ${host.name} for ${Math.round(ms)} ms`);
      trace.reached('outage of the event log');
      disturb();
    },
    restored() {
      awayUntil = 0;
    },
    dropSubscriptions() {
      drops++;
      trace.reached('subscription dropped');
      disturb();
    },
  };
}
