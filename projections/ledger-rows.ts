// The rows of the ledger that events leave, folded over those that they change. As with the leaves of the transparency tree,
// the batch is written only over the version that was read.
import { type DomainEvent, STREAM } from '#src/domain/events.ts';
import { isLedgerEvent } from '#src/domain/payment/ledger.ts';
import { accountKey } from '#src/domain/payment/reconciliation.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { type FoldedEvent, foldLedger, type LedgerTables } from '#src/usecases/process/fold-ledger.ts';
import type { JudgedEvent, Rows } from './fold.ts';
import type { ModelRow } from './model.ts';
import {
  CHAIN_BOOKS,
  type LedgerRow,
  OPEN_PAYMENTS,
  PAID_JOBS,
  PAYMENT_SUMS,
  REFUSED_PAYMENTS,
  type Shape,
  UNCONFIRMED_CHARGES,
} from './payment/project.ts';
import type { TableShape } from './rows.ts';

type LoadRows = (keys: ReadonlyMap<string, ReadonlySet<string>>) => Promise<Rows>;

const isFolded = (event: DomainEvent): event is FoldedEvent =>
  isLedgerEvent(event) || event.type === 'ChainReconciled';

/**
 * The same events, each with the rows of the ledger that it leaves. `shapes`: the tables that are written. `load`: the stored
 * rows of these keys. Events up to `after`, a position, are in the rows already; null: none are. `log`: for payments that
 * have no row any more. Throws what it throws, and for an event that cannot be read.
 */
export async function withLedger(
  shapes: readonly TableShape[],
  events: readonly JudgedEvent[],
  {
    load,
    log,
    after,
  }: { readonly load: LoadRows; readonly log: Pick<EventLog, 'readStream'>; readonly after: string | null },
): Promise<readonly JudgedEvent[]> {
  const isNew = ({ position, event }: JudgedEvent) => position > (after ?? '') && isFolded(event);
  if (!shapes.some(({ name }) => name === OPEN_PAYMENTS.table) || !events.some(isNew)) return events;
  const found: JudgedEvent[] = [];
  const tables = new RowTables(load);
  await tables.preload(events.filter(isNew));
  for (const judged of events) {
    if (!isNew(judged) || !isFolded(judged.event)) {
      found.push(judged);
      continue;
    }
    await foldLedger(tables.tables, log, judged, judged.event);
    found.push({ ...judged, facts: { ...judged.facts, ledger: tables.changed() } });
  }
  return found;
}

/** The ledger's tables over stored rows, and what the events have changed in them so far. */
class RowTables {
  readonly tables: LedgerTables;
  readonly #load: LoadRows;
  /** Table → key → the row after the events so far. */
  readonly #rows = new Map<string, Map<string, ModelRow | null>>();
  #changed = new Map<string, LedgerRow>();

  constructor(load: LoadRows) {
    this.#load = load;
    this.tables = {
      entries: this.#table(OPEN_PAYMENTS),
      unconfirmed: this.#table(UNCONFIRMED_CHARGES),
      refused: this.#table(REFUSED_PAYMENTS),
      jobs: this.#table(PAID_JOBS),
      sums: this.#table(PAYMENT_SUMS),
      comparisons: this.#table(CHAIN_BOOKS),
    };
  }

  /** What was changed since the last call. */
  changed(): readonly LedgerRow[] {
    const changed = [...this.#changed.values()];
    this.#changed = new Map();
    return changed;
  }

  /** Most of what the events need, in two statements whatever their number. */
  async preload(events: readonly JudgedEvent[]): Promise<void> {
    const keys = {
      jobs: new Set<string>(),
      payments: new Set<string>(),
      confirmed: new Set<string>(),
      accounts: new Set<string>(),
    };
    for (const { event, stream } of events)
      if (event.type === 'ChainReconciled') {
        keys.accounts.add(accountKey(event.data));
        for (const hash of event.data.confirmed) keys.confirmed.add(STREAM.payment(hash));
      } else if (isLedgerEvent(event)) {
        keys.jobs.add(event.data.jobId);
        if (!isOfJob(event)) keys.payments.add(stream);
      }
    await this.#read([
      [PAID_JOBS.table, keys.jobs],
      [OPEN_PAYMENTS.table, keys.payments],
      [REFUSED_PAYMENTS.table, keys.payments],
      [UNCONFIRMED_CHARGES.table, new Set([...keys.payments, ...keys.confirmed])],
      [CHAIN_BOOKS.table, keys.accounts],
    ]);
    const streams = new Set<string>();
    for (const row of this.#of(PAID_JOBS.table).values())
      if (typeof row?.stream === 'string') streams.add(row.stream);
    await this.#read([
      [OPEN_PAYMENTS.table, streams],
      [REFUSED_PAYMENTS.table, streams],
    ]);
  }

  #of(table: string): Map<string, ModelRow | null> {
    const rows = this.#rows.get(table) ?? new Map<string, ModelRow | null>();
    this.#rows.set(table, rows);
    return rows;
  }

  /** Those that were not read before. */
  async #read(wanted: readonly (readonly [table: string, keys: ReadonlySet<string>])[]): Promise<void> {
    const missing = new Map<string, ReadonlySet<string>>();
    for (const [table, keys] of wanted) {
      const known = this.#of(table);
      const unread = new Set([...keys].filter((key) => !known.has(key)));
      if (unread.size > 0) missing.set(table, unread);
    }
    if (missing.size === 0) return;
    const found = await this.#load(missing);
    for (const [table, keys] of missing)
      for (const key of keys) this.#of(table).set(key, found.get(table)?.get(key)?.row ?? null);
  }

  #table<V, R extends ModelRow>({ table, toRow, fromRow }: Shape<V, R>) {
    return {
      get: async (key: string): Promise<V | null> => {
        await this.#read([[table, new Set([key])]]);
        const row = this.#of(table).get(key) ?? null;
        return row === null ? null : fromRow(row as R);
      },
      set: (key: string, value: V | null): void => {
        const row = value === null ? null : toRow(key, value);
        this.#of(table).set(key, row);
        this.#changed.set(`${table} ${key}`, { table, key, row });
      },
    };
  }
}

const isOfJob = ({ type }: FoldedEvent): boolean => type === 'JobStarted' || type === 'JobCompleted';
