// The store of the read models in memory. Projector, session, projection and the queries are real: they run on a real
// drizzle handle, whose statements this store recognises by their text and executes on maps. An unknown statement throws.
import { drizzle } from 'drizzle-orm/pg-proxy';
import type { Db } from '#projections/rows.ts';
import type { ReadStore } from '#src/ports/read-store.ts';
import type { Host } from './host.ts';
import {
  type Draft,
  EMPTY,
  isWriting,
  type Row,
  execute as run,
  type Schema,
  type State,
} from './row-statements.ts';
import type { Trace } from './trace.ts';

/** Rows that outlive a process: those of a shared database, or of an embedded one's directory. */
export class RowStorage {
  state: State = EMPTY;
  /** The process in a transaction that writes. */
  lockedBy: Host | null = null;
  made = 0;

  /** The rows in use; null: there are none. */
  current(): Schema | null {
    const row = this.state.generations.find(({ state }) => state === 'current');
    return (row && this.state.schemas.get(row.schema)) ?? null;
  }

  isLockedFor(host: Host): boolean {
    return this.lockedBy?.alive === true && this.lockedBy !== host;
  }
}

export type StoreWeather = { unavailable: number; lostAnswer: number };

/** A connection that is lost in the middle of a statement. */
const lostConnection = () => Object.assign(new Error('the connection was lost'), { code: 'ECONNRESET' });

export function simulatedStore(
  storage: RowStorage,
  host: Host,
  weather: StoreWeather,
  options: { readonly disposable: boolean; readonly trace: Trace },
): ReadStore<Db> & { loseConnections(): void } {
  const handles = new Map<string, Db>();
  const { random } = host;

  /** One statement; `draft` null: it is its own transaction. */
  async function execute(
    schema: string | null,
    draft: Draft | null,
    text: string,
    params: readonly unknown[],
  ): Promise<Row[]> {
    const isWrite = isWriting(text);
    for (;;) {
      const rows = await host.call(
        isWrite ? 'a statement that writes rows' : null,
        () => {
          if (draft === null && isWrite && storage.isLockedFor(host)) return null;
          const before = draft ?? { state: storage.state, path: schema };
          const target = { ...before };
          const found = known(() => run(target, text, params, () => `relay_${++storage.made}`));
          if (draft !== null) Object.assign(draft, target);
          else storage.state = target.state;
          return found;
        },
        { fate: fateOf(), counts: isWrite },
      );
      if (rows !== null) return rows;
      await host.clock.sleep(2);
    }
  }

  /** A statement that is unknown here fails the seed: its caller may take that for an outage. */
  function known<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (error instanceof TypeError) host.bugs.push(error.message);
      throw error;
    }
  }

  function fateOf() {
    const drawn = random.next();
    const effect = drawn < weather.lostAnswer;
    if (drawn > weather.lostAnswer + weather.unavailable) return { kind: 'answered' } as const;
    options.trace.reached(effect ? 'statement with a lost answer' : 'statement that fails');
    return { kind: 'lost', afterMs: random.between(1, 500), error: lostConnection, effect } as const;
  }

  /** A transaction that writes excludes others that do; one that only reads sees one state. */
  async function transaction<T>(
    schema: string | null,
    work: (tx: Db) => Promise<T>,
    config?: unknown,
  ): Promise<T> {
    const isSnapshot = config !== undefined;
    while (!isSnapshot && storage.isLockedFor(host)) await host.clock.sleep(2);
    if (!isSnapshot) storage.lockedBy = host;
    try {
      const draft: Draft = { state: storage.state, path: schema };
      const result = await work(handle(schema, draft));
      if (!isSnapshot)
        await host.call(
          'a commit',
          () => {
            storage.state = draft.state;
          },
          { counts: true },
        );
      return result;
    } finally {
      if (!isSnapshot) storage.lockedBy = null;
    }
  }

  function handle(schema: string | null, draft: Draft | null): Db {
    const db = drizzle(async (text, params, method) => {
      const rows = await execute(schema, draft, text, params);
      return { rows: method === 'execute' ? rows : rows.map((row) => Object.values(row)) };
    });
    Object.defineProperty(db, 'transaction', {
      value: (work: (tx: Db) => Promise<unknown>, config?: unknown) => transaction(schema, work, config),
    });
    return db;
  }

  /** The first call connects; then the handle is known, until the connections are lost. */
  const open = async (name: string, schema: string | null) => {
    const known = handles.get(name);
    if (known !== undefined) return known;
    return host.call(null, () => {
      const made = handles.get(name) ?? handle(schema, null);
      handles.set(name, made);
      return made;
    });
  };
  return {
    disposable: options.disposable,
    layout: { version: 'simulated', statements: [] },
    shared: () => open('shared', null),
    open: (schema) => open(`schema ${schema}`, schema),
    health: async () => ({ ok: true }),
    close: async () => undefined,
    loseConnections: () => handles.clear(),
  };
}
