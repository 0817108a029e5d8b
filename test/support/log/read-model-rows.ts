// Rows by the pure fold alone, without any database: what every store must hold after the same events.
import { foldChanges, keysOf, planChanges, type Rows } from '#projections/fold.ts';
import { withLedger } from '#projections/ledger-rows.ts';
import { judgeEvents, withLeaves } from '#projections/projection.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { tableShapes } from '#projections/rows.ts';
import type { Ledger, LedgerEntry } from '#src/domain/payment/ledger.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { judgeBySignature } from '#test/support/given/job-histories.ts';

const shapes = tableShapes(READ_MODELS);

/** Applies one batch to `rows`, as the runner does to the store's. `history`: all events of the log. */
export async function applyBatch(
  rows: Rows,
  batch: readonly RecordedEvent[],
  history: readonly RecordedEvent[] = batch,
): Promise<void> {
  const load = async (wanted: ReadonlyMap<string, ReadonlySet<string>>) => {
    for (const [table, keys] of wanted) {
      const known = rows.get(table) ?? new Map();
      rows.set(table, known);
      for (const key of keys) if (!known.has(key)) known.set(key, null);
    }
    return rows;
  };
  const events = await withLeaves(shapes, await judgeEvents(batch, judgeBySignature), load);
  const ledger = { load, log: streamsOf(history), after: lastOf(rows) };
  const changes = planChanges(READ_MODELS, await withLedger(shapes, events, ledger));
  foldChanges(await load(keysOf(changes)), changes);
}

/** The position of the last event that left a row. */
function lastOf(rows: Rows): string | null {
  const positions = [...rows.values()].flatMap((table) =>
    [...table.values()].flatMap((stored) => (stored === null ? [] : [stored.position])),
  );
  return positions.reduce<string | null>((last, one) => (last === null || one > last ? one : last), null);
}

/** The newest last, or backwards from a revision on. */
const streamsOf = (events: readonly RecordedEvent[]) => ({
  async readStream(
    stream: string,
    { from, direction }: { from?: bigint; direction?: 'forwards' | 'backwards' } = {},
  ) {
    const found = events.filter((event) => event.stream === stream);
    if (direction !== 'backwards') return found;
    return found.filter(({ revision }) => from === undefined || revision <= from).reverse();
  },
});

export async function rowsAfter(events: readonly RecordedEvent[]): Promise<Rows> {
  const rows: Rows = new Map();
  await applyBatch(rows, events);
  return rows;
}

/** Table → rows in order of their keys, under the columns' names: as `allRows` reads them from a store. */
export function asStored(rows: Rows): Record<string, readonly unknown[]> {
  return Object.fromEntries(
    shapes.map(({ name, key, columns }) => {
      const found = [...(rows.get(name)?.values() ?? [])].flatMap((stored) => {
        if (stored === null) return [];
        const cells = columns.map(({ property, name: column }) => [column, stored.row[property]]);
        return [JSON.parse(JSON.stringify({ ...Object.fromEntries(cells), position: stored.position }))];
      });
      return [name, found.sort((a, b) => (String(a[key]) < String(b[key]) ? -1 : 1))];
    }),
  );
}

/** As rows have it: only the event log has nonces. */
export const withoutNonces = (ledger: Ledger): Ledger => ({
  ...ledger,
  entries: new Map([...ledger.entries].map(([stream, entry]) => [stream, withoutNonce(entry)])),
});
const withoutNonce = ({ payment, ...entry }: LedgerEntry): LedgerEntry =>
  payment.status === 'absent'
    ? { ...entry, payment }
    : { ...entry, payment: { ...payment, reserved: { ...payment.reserved, nonce: '' } } };
