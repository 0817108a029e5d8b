// Rows by the pure fold alone, without any database: what every store must hold after the same events.
import { foldChanges, keysOf, planChanges, type Rows } from '#projections/fold.ts';
import { type JudgeReceipt, judgeEvents, withLeaves } from '#projections/projection.ts';
import { READ_MODELS } from '#projections/registry.ts';
import { tableShapes } from '#projections/rows.ts';
import type { RecordedEvent } from '#src/ports/event-log.ts';
import { judgeBySignature } from './job-histories.ts';

const shapes = tableShapes(READ_MODELS);

/** Applies one batch to `rows`, as the runner does to the store's. */
export async function applyBatch(
  rows: Rows,
  batch: readonly RecordedEvent[],
  judge: JudgeReceipt = judgeBySignature,
): Promise<void> {
  const load = async (wanted: ReadonlyMap<string, ReadonlySet<string>>) => {
    for (const [table, keys] of wanted) {
      const known = rows.get(table) ?? new Map();
      rows.set(table, known);
      for (const key of keys) if (!known.has(key)) known.set(key, null);
    }
    return rows;
  };
  const events = await withLeaves(shapes, await judgeEvents(batch, judge), load);
  const changes = planChanges(READ_MODELS, events);
  foldChanges(await load(keysOf(changes)), changes);
}

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
