// The memory log with faults: unavailable, lost answers, frozen until released, or another writer that appends first.
import { type EventLog, EventLogUnavailable, type NewEvent } from '#src/ports/event-log.ts';
import type { ScriptedOutbound, Trace } from '#test/support/world/fakes.ts';
import { type MemoryLog, memoryLog } from './memory-log.ts';

/** Wraps one append: calls `store` or not, before or after a fault. */
export type Interception = <T>(store: () => Promise<T>) => Promise<T>;

export type FaultyLog = MemoryLog & {
  /** Applies `interception` to the next append with an event of this type. */
  onNext(type: string, interception: Interception): void;
  /** Types of every append that was stored, in order, one line an append. */
  readonly stored: readonly string[];
};

/**
 * `trace`: receives the types of every acknowledged append, joined by `+`. `together`: it can store appends together, as the
 * embedded log, and counts them as one append.
 */
export function faultyLog(
  trace: Trace = [],
  inner: MemoryLog = memoryLog(),
  { together = false } = {},
): FaultyLog {
  const plans: { readonly type: string; readonly interception: Interception }[] = [];
  const stored: string[] = [];
  const ids = new Set<string>();
  const typesOf = (events: readonly NewEvent[]) => events.map(({ type }) => type).join('+');
  async function intercepted<T>(events: readonly NewEvent[], appended: () => Promise<T>): Promise<T> {
    const store = async () => {
      const answer = await appended();
      const [first] = events;
      if (first !== undefined && !ids.has(first.id)) stored.push(typesOf(events));
      if (first !== undefined) ids.add(first.id);
      return answer;
    };
    const index = plans.findIndex(({ type }) => events.some((event) => event.type === type));
    const [plan] = index < 0 ? [] : plans.splice(index, 1);
    const answer = await (plan === undefined ? store() : plan.interception(store));
    trace.push(typesOf(events));
    return answer;
  }
  const append: EventLog['append'] = (stream, expected, events) =>
    intercepted(events, () => inner.append(stream, expected, events));
  const appendTogether: EventLog['appendTogether'] = (appends) =>
    intercepted(
      appends.flatMap(({ events }) => events),
      async () => (await inner.appendTogether?.(appends)) ?? [],
    );
  return Object.defineProperties(
    {
      ...inner,
      append,
      appendTogether: together ? appendTogether : null,
      stored,
      onNext: (type: string, interception: Interception) => void plans.push({ type, interception }),
    },
    { appends: { get: () => inner.appends } },
  );
}

/** Nothing is stored, and the result is unknown to the caller. */
export const unavailable: Interception = async () => {
  throw new EventLogUnavailable();
};

/** Stored, and the answer is lost. */
export const lostAnswer: Interception = async (store) => {
  await store();
  throw new EventLogUnavailable({ cause: new Error('the answer was lost') });
};

/** The process dies before the append reaches the log, or right after it is stored. */
export const dies = (when: 'before' | 'after'): Interception => {
  return async (store) => {
    if (when === 'after') await store();
    throw new Crash();
  };
};

/** The process dies while its request is under way: it records nothing of it. */
export function diesInSend({
  log,
  outbound,
}: {
  readonly log: FaultyLog;
  readonly outbound: ScriptedOutbound;
}): void {
  outbound.script(() => {
    log.onNext('AttemptMade', dies('before'));
    throw new Crash();
  });
}

/** A process that was killed: its use case ends here. */
export class Crash extends Error {
  constructor() {
    super('the process died here');
    this.name = 'Crash';
  }
}

/** Another writer acts first. */
export const afterOthers = (act: () => Promise<unknown>): Interception => {
  return async (store) => {
    await act();
    return store();
  };
};

/** Blocked until released. `reached` resolves when the append is blocked. */
export function gate() {
  let open = () => {};
  let arrive = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const reached = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  const frozen: Interception = async (store) => {
    arrive();
    await opened;
    return store();
  };
  return { frozen, reached, open: () => open() };
}
