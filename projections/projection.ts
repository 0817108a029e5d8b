// A generation's rows as one process projects into them: events in, rows and position out. Writing is optimistic: every
// batch expects the version that it was folded over, so a process that was overtaken, however long it slept, writes nothing.
import { sql } from 'drizzle-orm';
import { type RecordedEvent, readEvent } from '#src/domain/event-codec.ts';
import type { EventOf } from '#src/domain/events.ts';
import { type ReadReceipt, readReceipt } from '#src/domain/receipt/payload.ts';
import { type Dirty, foldChanges, type JudgedEvent, keysOf, planChanges, type Rows } from './fold.ts';
import { eventMark } from './generations.ts';
import { withLeaves } from './leaves.ts';
import type { Facts, ReadModel } from './registry.ts';
import { type Db, loadRows, rowsOf, type TableShape, tableShapes, writeRows } from './rows.ts';

/**
 * Whether a receipt's signature is valid and its signing key was valid at issue, by the key events before `position` in
 * the log: the same answer whenever the log is read. `read`: the receipt.
 */
export type JudgeReceipt = (
  receipt: EventOf<'ReceiptSigned'>['data'],
  position: string,
  read: ReadReceipt,
) => Promise<boolean>;

const NO_FACTS: Facts = { receiptVerified: false, payload: null, leaf: null };

/** Decodes and judges; what is unknown, malformed or cannot be stored is passed over. */
export async function judgeEvents(
  recorded: readonly RecordedEvent[],
  judgeReceipt: JudgeReceipt,
): Promise<readonly JudgedEvent[]> {
  const judged: JudgedEvent[] = [];
  for (const { type, data, position } of recorded) {
    const event = readEvent({ type, data });
    if (event === null) continue;
    if (event.type === 'ReceiptSigned') {
      const read = readReceipt(event.data.jws);
      const receiptVerified = await judgeReceipt(event.data, position, read);
      judged.push({ position, event, facts: { ...NO_FACTS, receiptVerified, payload: read.payload } });
    } else judged.push({ position, event, facts: NO_FACTS });
  }
  return judged;
}

/** Where the rows of a generation are. */
export type ProjectionHead = {
  readonly version: number;
  readonly position: string | null;
  readonly event: string | null;
};

/** Throws if the schema of `db` is gone. */
export async function readHead(db: Db): Promise<ProjectionHead> {
  const [row] = await rowsOf<{ version: number | string; position: string | null; event: string | null }>(
    db,
    sql`select version, position, event from projection where id = 'all'`,
  );
  if (row === undefined) throw new Error('the generation has no projection position');
  return { ...row, version: Number(row.version) };
}

/** Writes changed rows and the position, expecting `version`. */
export type WriteBatch = (
  dirty: Dirty,
  version: number,
  to: { readonly position: string; readonly event: string },
) => Promise<boolean>;

/** Rows in memory: what was written last is most of what the next batch needs. */
const CACHED_ROWS = 4000;

export type ProjectorOptions = {
  readonly models: readonly ReadModel[];
  readonly cachedRows?: number;
};

export class Projector {
  readonly shapes: readonly TableShape[];
  readonly #options: ProjectorOptions;
  #head: ProjectionHead;
  #rows: Rows = new Map();

  constructor(head: ProjectionHead, options: ProjectorOptions) {
    this.#head = head;
    this.#options = options;
    this.shapes = tableShapes(options.models);
  }

  get head(): ProjectionHead {
    return this.#head;
  }

  /** Somebody else has written: rows in memory are out of date. */
  moved(head: ProjectionHead): void {
    if (head.version !== this.#head.version) this.forget();
    this.#head = head;
  }

  forget(): void {
    this.#rows.clear();
  }

  /** Folds the events over their rows and writes both; false: somebody else has written, and nothing was. */
  async project(
    db: Db,
    judged: readonly JudgedEvent[],
    last: RecordedEvent,
    write: WriteBatch = (dirty, version, to) => writeRows(db, this.shapes, dirty, version, to),
  ): Promise<boolean> {
    const { models } = this.#options;
    const load = (keys: ReadonlyMap<string, ReadonlySet<string>>) => this.#load(db, keys);
    const changes = planChanges(models, await withLeaves(this.shapes, judged, load));
    const keys = keysOf(changes);
    const rows = await load(keys);
    const dirty = foldChanges(rows, changes);
    const to = { position: last.position, event: eventMark(last) };
    const { version } = this.#head;
    let written = false;
    try {
      written = await write(dirty, version, to);
    } finally {
      if (!written) this.forget();
    }
    if (written) this.#head = { version: version + 1, ...to };
    this.#trim(keys);
    return written;
  }

  /** The rows in memory, with those of `keys` among them. */
  async #load(db: Db, keys: ReadonlyMap<string, ReadonlySet<string>>): Promise<Rows> {
    const missing = new Map<string, Set<string>>();
    for (const [table, of] of keys) {
      let known = this.#rows.get(table);
      if (known === undefined) {
        known = new Map();
        this.#rows.set(table, known);
      }
      missing.set(table, new Set([...of].filter((key) => !known.has(key))));
    }
    for (const [table, found] of await loadRows(db, this.shapes, missing))
      for (const [key, row] of found) this.#rows.get(table)?.set(key, row);
    return this.#rows;
  }

  #trim(recent: ReadonlyMap<string, ReadonlySet<string>>): void {
    let count = 0;
    for (const rows of this.#rows.values()) count += rows.size;
    if (count <= (this.#options.cachedRows ?? CACHED_ROWS)) return;
    for (const [table, rows] of this.#rows) {
      const kept = new Map<string, ReturnType<typeof rows.get> | null>();
      for (const key of recent.get(table) ?? []) kept.set(key, rows.get(key) ?? null);
      this.#rows.set(table, kept as typeof rows);
    }
  }
}
