// A generation's rows as one process projects into them: events in, rows and position out. Writing is optimistic: every
// batch expects the version that it was folded over, so a process that was overtaken, however long it slept, writes nothing.
import { sql } from 'drizzle-orm';
import { type RecordedEvent, readEvent } from '#src/domain/event-codec.ts';
import type { EventOf } from '#src/domain/events.ts';
import { type ReadReceipt, readReceipt } from '#src/domain/receipt/payload.ts';
import { appendLeaf, isLeaf, leafData, type Tree } from '#src/domain/transparency/tree.ts';
import { BloomFilter } from '#src/lib/bloom-filter.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import {
  countsAfter,
  type Dirty,
  foldChanges,
  type JudgedEvent,
  keysOf,
  planChanges,
  type Rows,
  type StoredRow,
} from './fold.ts';
import { eventMark } from './generations.ts';
import { withLedger } from './ledger-rows.ts';
import type { ModelRow, ReadModel, RecordedFacts } from './model.ts';
import { type CopyRows, type Db, loadRows, rowsOf, type TableShape, tableShapes, writeRows } from './rows.ts';
import { readTree } from './transparency/query.ts';

/**
 * Whether a receipt's signature is valid and its signing key was valid at issue, by the key events before `position` in
 * the log: the same answer whenever the log is read. `read`: the receipt.
 */
export type JudgeReceipt = (
  receipt: EventOf<'ReceiptSigned'>['data'],
  position: string,
  read: ReadReceipt,
) => Promise<boolean>;

type Streams = Pick<EventLog, 'readStream'>;

const NO_FACTS: RecordedFacts = { receiptVerified: false, payload: null, leaf: null, ledger: [] };

/** Receipts are judged beside each other: more at a time cost this thread more for each. */
const BESIDE = 8;

/** Decodes and judges; what is unknown, malformed or cannot be stored is passed over. */
export async function judgeEvents(
  recorded: readonly RecordedEvent[],
  judgeReceipt: JudgeReceipt,
): Promise<readonly JudgedEvent[]> {
  const width = Math.ceil(recorded.length / BESIDE);
  const slices = Array.from({ length: BESIDE }, (_, n) => recorded.slice(n * width, (n + 1) * width));
  return (await Promise.all(slices.map((slice) => judgeSlice(slice, judgeReceipt)))).flat();
}

async function judgeSlice(
  recorded: readonly RecordedEvent[],
  judgeReceipt: JudgeReceipt,
): Promise<readonly JudgedEvent[]> {
  const judged: JudgedEvent[] = [];
  for (const { type, data, stream, revision, position } of recorded) {
    const place = { stream, revision, position };
    const event = readEvent({ type, data });
    if (event === null) continue;
    if (event.type === 'ReceiptSigned') {
      const read = readReceipt(event.data.jws);
      const receiptVerified = await judgeReceipt(event.data, position, read);
      judged.push({ ...place, event, facts: { ...NO_FACTS, receiptVerified, payload: read.payload } });
    } else judged.push({ ...place, event, facts: NO_FACTS });
  }
  return judged;
}

/** Where the rows of a generation are. */
export type ProjectionHead = {
  readonly version: number;
  readonly position: string | null;
  readonly event: string | null;
  /** Rows of each table, by its name. */
  readonly counts: Readonly<Record<string, number>>;
  /** Why rows are missing; null: none are. */
  readonly loss: string | null;
};

const NO_HEAD: ProjectionHead = { version: 0, position: null, event: null, counts: {}, loss: 'its position' };

/** Throws if the schema of `db` is gone. */
export async function readHead(db: Db): Promise<ProjectionHead> {
  const [row] = await rowsOf<Omit<ProjectionHead, 'version'> & { version: number | string }>(
    db,
    sql`select version, position, event, counts, loss from projection where id = 'all'`,
  );
  return row === undefined ? NO_HEAD : { ...row, version: Number(row.version) };
}

/** The rows that a batch changes, and the event that it ends with. */
export type FoldedBatch = { readonly dirty: Dirty; readonly last: RecordedEvent; readonly events: number };

/** Keys that the filter of new keys is made for, for each row in memory, and at most: 15 MB in a rebuild. */
const KEYS = 100;
const KEYS_MOST = 10_000_000;

type ProjectionOptions = {
  readonly models: readonly ReadModel[];
  readonly judgeReceipt: JudgeReceipt;
  readonly log: Streams;
  /** Rows in memory: what was written last is most of what the next batch needs. */
  readonly cachedRows: number;
  /** null: the store has no faster way for new rows. */
  readonly copy?: CopyRows | null;
};

export class Projection {
  readonly #models: readonly ReadModel[];
  readonly #shapes: readonly TableShape[];
  readonly #copy: CopyRows | null;
  readonly #judgeReceipt: JudgeReceipt;
  readonly #log: Streams;
  readonly #cachedRows: number;
  #head: ProjectionHead;
  #rows: Rows = new Map();
  /** null: rows may be there that this process has not written. */
  #newKeys: BloomFilter | null;
  /** Of the batch that was folded last: it may not be written yet. */
  #recent: ReadonlyMap<string, ReadonlySet<string>> = new Map();

  constructor(head: ProjectionHead, options: ProjectionOptions) {
    this.#head = head;
    this.#models = options.models;
    this.#shapes = tableShapes(options.models);
    this.#copy = options.copy ?? null;
    // No process has written yet: a position that was taken back leaves rows.
    const isFresh = head.version === 0 && head.loss === null;
    this.#newKeys = isFresh
      ? new BloomFilter({ texts: Math.min(KEYS * options.cachedRows, KEYS_MOST) })
      : null;
    this.#judgeReceipt = options.judgeReceipt;
    this.#log = options.log;
    this.#cachedRows = options.cachedRows;
  }

  get head(): ProjectionHead {
    return this.#head;
  }

  /** Somebody else has written: rows in memory are out of date. */
  moved(head: ProjectionHead): void {
    if (head.version !== this.#head.version) this.forget();
    this.#head = head;
  }

  /** A batch that was folded and is not written has changed the rows in memory. */
  forget(): void {
    this.#rows.clear();
    this.#newKeys = null;
  }

  /**
   * Folds the events, of which there is one at least, over their rows: over those of the batch that was folded before, too,
   * which may be written meanwhile.
   */
  async fold(db: Db, events: readonly RecordedEvent[]): Promise<FoldedBatch> {
    const last = events.at(-1);
    if (last === undefined) throw new Error('a batch has one event at least');
    this.#trim();
    const judged = await judgeEvents(events, this.#judgeReceipt);
    const load = (keys: ReadonlyMap<string, ReadonlySet<string>>) => this.#load(db, keys);
    const grown = await withLeaves(this.#shapes, judged, load);
    const [log, after] = [this.#log, this.#head.position];
    const changes = planChanges(this.#models, await withLedger(this.#shapes, grown, { load, log, after }));
    const keys = keysOf(changes);
    const rows = await load(keys);
    this.#recent = keys;
    return { dirty: foldChanges(rows, changes), last, events: events.length };
  }

  /** Writes the batch that was folded after the one that was written last; false: somebody else has written. */
  async write(db: Db, { dirty, last }: FoldedBatch): Promise<boolean> {
    const { version } = this.#head;
    const from = { version, copy: this.#copy };
    const counts = countsAfter(this.#head.counts, dirty);
    const to = { position: last.position, event: eventMark(last), counts };
    let written = false;
    try {
      written = await writeRows(db, this.#shapes, dirty, from, to);
    } finally {
      if (!written) this.forget();
    }
    if (written) this.#head = { version: version + 1, ...to, loss: null };
    return written;
  }

  /** The rows in memory, with those of `keys` among them. */
  async #load(db: Db, keys: ReadonlyMap<string, ReadonlySet<string>>): Promise<Rows> {
    const missing = new Map<string, Set<string>>();
    for (const [table, touched] of keys) {
      const known = this.#rows.get(table) ?? new Map<string, StoredRow | null>();
      this.#rows.set(table, known);
      const wanted = new Set<string>();
      for (const key of touched) {
        if (known.has(key)) continue;
        if (this.#newKeys?.add(`${table} ${key}`)) known.set(key, null);
        else wanted.add(key);
      }
      missing.set(table, wanted);
    }
    for (const [table, found] of await loadRows(db, this.#shapes, missing))
      for (const [key, row] of found) this.#rows.get(table)?.set(key, row);
    return this.#rows;
  }

  #trim(): void {
    let count = 0;
    for (const rows of this.#rows.values()) count += rows.size;
    if (count <= this.#cachedRows) return;
    for (const [table, rows] of this.#rows) {
      const recent = this.#recent.get(table);
      for (const key of rows.keys()) if (!recent?.has(key)) rows.delete(key);
    }
  }
}

// ── leaves ───────────────────────────────────────────────────────────────────────────────────────────
// The leaves that events add to the transparency tree. The tree is read as the rows of a batch are, and the batch is written
// only over the version that was read: no two projectors number a leaf alike.

const TABLE = 'transparency_tree';
const KEY = 'all';

/**
 * The same events, each new leaf with its place in the tree. `shapes`: the tables that are written. `load`: the stored rows
 * of these keys. Leaves up to the position of the stored tree are in it already.
 */
export async function withLeaves(
  shapes: readonly TableShape[],
  events: readonly JudgedEvent[],
  load: (keys: ReadonlyMap<string, ReadonlySet<string>>) => Promise<Rows>,
): Promise<readonly JudgedEvent[]> {
  if (!shapes.some(({ name }) => name === TABLE) || !events.some(({ event }) => isLeaf(event))) return events;
  const stored = (await load(new Map([[TABLE, new Set([KEY])]]))).get(TABLE)?.get(KEY) ?? null;
  const after = stored?.position ?? '';
  let tree = treeOf(stored?.row ?? null);
  const grown: JudgedEvent[] = [];
  for (const judged of events) {
    const isNew = judged.position > after && isLeaf(judged.event);
    const data = isNew ? leafData(judged.event) : null;
    if (data === null) {
      grown.push(judged);
      continue;
    }
    const index = tree.size;
    const appended = appendLeaf(tree, data);
    tree = appended.tree;
    grown.push({ ...judged, facts: { ...judged.facts, leaf: { index, data, ...appended } } });
  }
  return grown;
}

function treeOf(row: ModelRow | null): Tree {
  if (row === null) return readTree(null);
  const { size, edge } = row;
  if (typeof size !== 'number' || typeof edge !== 'string')
    throw new Error('the stored tree of the transparency log cannot be read');
  return readTree({ id: KEY, size, edge });
}
