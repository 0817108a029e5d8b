// All queries of the rows, over a store that may be unavailable: each returns within its time limit or throws the fault
// `read_models_unavailable`. Links, statuses and the meaning of a missing row are up to http.
import { Fault } from '#src/domain/refusal.ts';
import type { Clock } from '#src/ports/clock.ts';
import { MODELS, type Needs } from './registry.ts';
import type { Db } from './rows.ts';
import { store } from './store-query.ts';

const GROUPS = { ...MODELS, store };

type Group = keyof typeof GROUPS;
export type ReadModels = { readonly [G in Group]: ReturnType<(typeof GROUPS)[G]['queries']> };

/** A frozen database does not answer: the caller gets a fault after this time. */
const ANSWER_MS = 5000;
/** At the start of the process the first queries wait for the store to open. */
const OPEN_MS = 1000;

/** `ready`: whether the rows have caught up with the log since the process began; known within a second. */
export function readModels(
  store: { open(): Promise<Db> },
  clock: Clock,
  ready: () => Promise<boolean>,
): ReadModels {
  const within = timeLimits(clock);
  const groups = (Object.keys(GROUPS) as Group[]).map((name) => [name, guarded(name)] as const);
  return Object.fromEntries(groups) as unknown as ReadModels;

  function guarded<G extends Group>(name: G): ReadModels[G] {
    let made: { readonly db: Db; readonly queries: Record<string, Ask> } | null = null;
    const ask = async (query: string, needs: Needs, given: readonly unknown[]): Promise<unknown> => {
      const db = await within(OPEN_MS, async () => store.open());
      if (made?.db !== db) made = { db, queries: GROUPS[name].queries(db) as unknown as Record<string, Ask> };
      const { queries } = made;
      if (needs === 'whole' && !(await ready())) throw unavailable(new Error('still replaying'));
      return await within(ANSWER_MS, async () => queries[query]?.(...given));
    };
    const asks = Object.entries<Needs>(GROUPS[name].needs).map(([query, needs]): [string, Ask] => [
      query,
      (...given) => ask(query, needs, given),
    ]);
    return Object.fromEntries(asks) as unknown as ReadModels[G];
  }
}

type Ask = (...given: readonly unknown[]) => Promise<unknown>;

/** Fails with a `Fault` if `work`, which is async, fails or takes longer. */
type Within = <T>(limitMs: number, work: () => Promise<T>) => Promise<T>;

/** How late a limit may be noticed. */
const LOOK_MS = 50;

/** Limits of all queries in progress, by one timer: a timer for each costs a tenth of a read by key. */
function timeLimits(clock: Pick<Clock, 'sleep' | 'monotonic'>): Within {
  const waiting = new Set<{ readonly until: number; readonly expire: () => void }>();
  let looking = false;
  async function look(): Promise<void> {
    looking = true;
    while (waiting.size > 0) {
      await clock.sleep(LOOK_MS);
      const now = clock.monotonic();
      for (const { until, expire } of waiting) if (now >= until) expire();
    }
    looking = false;
  }
  return (limitMs, work) =>
    new Promise((resolve, reject) => {
      const end = () => waiting.delete(limit);
      const fail = (cause: unknown) => {
        end();
        reject(unavailable(cause));
      };
      const late = () => fail(new Error(`the read models did not answer within ${limitMs} ms`));
      const limit = { until: clock.monotonic() + limitMs, expire: late };
      waiting.add(limit);
      if (!looking) void look();
      work().then((answer) => {
        end();
        resolve(answer);
      }, fail);
    });
}

/** The fault that a reader gets while the rows cannot be read, or are not known to be complete. */
export function unavailable(cause?: unknown): Fault {
  return new Fault('read_models_unavailable', 'the read models are not available now', {
    cause,
    retryAfterSeconds: 1,
  });
}
