// Folds events over rows in memory, with no database: the same for a service and for a rebuild.
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import type { DomainEvent } from '#src/domain/events.ts';
import type { Change, ModelRow, ReadModel, RecordedFacts } from './model.ts';

export type JudgedEvent = Pick<RecordedEvent, 'stream' | 'revision' | 'position'> & {
  readonly event: DomainEvent;
  readonly facts: RecordedFacts;
};

/** A row and the position of the last event applied to it. */
export type StoredRow = { readonly row: ModelRow; readonly position: string };

/** Table name → key → the row, null where there is none. */
export type Rows = Map<string, Map<string, StoredRow | null>>;

/** Table name → key → a row as a batch leaves it, null for a delete; `existed`: whether there was one before. */
export type Dirty = ReadonlyMap<string, ReadonlyMap<string, ChangedRow>>;
export type ChangedRow = { readonly existed: boolean; readonly stored: StoredRow | null };

/** How many rows each table has after the batch. */
export function countsAfter(
  before: Readonly<Record<string, number>>,
  dirty: Dirty,
): Readonly<Record<string, number>> {
  const counts: Record<string, number> = { ...before };
  for (const [table, changed] of dirty) {
    let count = counts[table] ?? 0;
    for (const { existed, stored } of changed.values()) count += Number(stored !== null) - Number(existed);
    counts[table] = count;
  }
  return counts;
}

export type PlannedChange = Change & { readonly position: string };

export function planChanges(
  models: readonly ReadModel[],
  events: readonly JudgedEvent[],
): readonly PlannedChange[] {
  // Plain loops: this runs for each event of a rebuild.
  const planned: PlannedChange[] = [];
  for (const { position, event, facts } of events) {
    for (const model of models) {
      for (const { table, key, apply } of model.project(event, facts))
        planned.push({ position, table, key, apply });
    }
  }
  return planned;
}

/** The keys that the changes touch, by table. */
export function keysOf(changes: readonly PlannedChange[]): Map<string, Set<string>> {
  const keys = new Map<string, Set<string>>();
  for (const { table, key } of changes) {
    const known = keys.get(table);
    if (known === undefined) keys.set(table, new Set([key]));
    else known.add(key);
  }
  return keys;
}

/**
 * Applies the changes to `rows` (every key of theirs is in it) and returns what is to be written. A change at or before the
 * position of its row was applied before and is passed over.
 */
export function foldChanges(rows: Rows, changes: readonly PlannedChange[]): Dirty {
  const dirty = new Map<string, Map<string, ChangedRow>>();
  for (const { table, key, position, apply } of changes) {
    const tableRows = rows.get(table);
    const stored = tableRows?.get(key) ?? null;
    if (stored !== null && stored.position >= position) continue;
    const after = apply(stored?.row ?? null);
    if (after === null && stored === null) continue;
    const next = after === null ? null : { row: after, position };
    tableRows?.set(key, next);
    let tableDirty = dirty.get(table);
    if (tableDirty === undefined) {
      tableDirty = new Map();
      dirty.set(table, tableDirty);
    }
    const existed = tableDirty.get(key)?.existed ?? stored !== null;
    tableDirty.set(key, { existed, stored: next });
  }
  return dirty;
}
