// The event log of a deployment: one storage, and the port as each process reaches it, with lost requests, lost and late
// acknowledgements, outages, and subscriptions that are interrupted or end.
import { eventRow } from '#src/adapters/event-log/sqlite/append.ts';
import {
  type Appended,
  type EventLog,
  EventLogUnavailable,
  type LiveMessage,
  type RecordedEvent,
  type StreamAppend,
  WrongExpectedVersion,
} from '#src/ports/event-log.ts';
import { MemoryEvents } from '#test/support/log/memory-log.ts';
import { ANSWERED, EPOCH, type Fate, type Host } from './host.ts';
import type { Trace } from './trace.ts';

/** The storage: its methods are the effects of calls. */
export class LogStore extends MemoryEvents {
  /** How many events there were after each append. */
  readonly ends: number[] = [];
  /** How often a backup was restored. */
  restored = 0;
  onStored: (events: readonly RecordedEvent[]) => void = () => undefined;
  readonly #trace: Trace;
  /** It stores appends together, as the embedded log. */
  readonly canTogether: boolean;

  constructor(trace: Trace, now: () => number, canTogether: boolean) {
    super(() => EPOCH + now());
    this.#trace = trace;
    this.canTogether = canTogether;
  }

  override appendTogether(
    appends: Parameters<MemoryEvents['appendTogether']>[0],
  ): ReturnType<MemoryEvents['appendTogether']> {
    try {
      const appended = super.appendTogether(appends);
      if (appends.length > 1) this.#trace.reached('appends stored together');
      return appended;
    } catch (error) {
      if (error instanceof WrongExpectedVersion) this.#trace.reached('append conflict');
      throw error;
    }
  }

  protected override repeated(): void {
    this.#trace.reached('append repeated by its ids');
  }

  protected override stored(events: readonly RecordedEvent[]): void {
    this.ends.push(this.events.length);
    const types = events.map(({ type }) => type);
    this.#trace.note(`the log stores ${types.join(', ')} in ${shortened(events[0]?.stream ?? '')}`);
    for (const type of types) this.#trace.reached(`event ${type}`);
    this.onStored(events);
  }

  override cut(count: number): void {
    this.restored++;
    super.cut(count);
  }
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
    const rows = given.map((append) => ({ ...append, events: append.events.map(eventRow) }));
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
