// This release's generation of read models, as the processes of a service share it: validated against the log before its
// rows are read, marked as used, replaced if it is of another history or has lost rows.
import type { Cancel } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import {
  checkpointsElsewhere,
  createGeneration,
  currentSchema,
  type Generation,
  type GenerationStore,
  generationOf,
  logHolds,
  markUsed,
  pruneGenerations,
  retire,
} from './generations.ts';
import type { ReadModel } from './model.ts';
import { type ProjectionHead, readHead } from './projection.ts';
import { type Db, tableShapes } from './rows.ts';
import { findLoss, findMissingTable } from './whole.ts';

export type OpenRows = { readonly schema: string; readonly db: Db; readonly head: ProjectionHead };

export type GenerationDeps = {
  readonly log: Pick<EventLog, 'subscribeAll' | 'readAll' | 'readStream' | 'head'>;
  readonly store: GenerationStore;
  readonly clock: Clock;
  readonly logger: Logger;
};

/** The rows or their handle are no longer those of this session: begin again from where they are. */
export class RowsMoved extends Error {}
/**
 * The subscription to the log was interrupted (`cause`: its failure), or the log lacks an event of the rows, or rows were
 * deleted: they are validated before they are read.
 */
export class RowsDoubted extends Error {}

const MARK_USED_MS = 60_000;
const UNUSED_MS = 7 * 86_400_000;
/** A history counts as lost only if the log still lacks the event after this. */
const LOST_AFTER_MS = 500;

type LiveOptions = {
  readonly ending: Cancel;
  /** Called before rows are replaced. */
  readonly onDoubt: () => void;
  /** Called where there are no rows, before they are built from the first event. */
  readonly beforeBuild: () => Promise<void>;
  /** Called when rows were compared with the log. `elsewhere`: notes of checkpoints in other generations of this log. */
  readonly onCompared: (elsewhere: readonly string[]) => void;
  readonly onEmptyLog: () => void;
};

export class LiveGeneration {
  /** false: the store has failed since it last answered, or the log has no event to compare rows with. */
  isOpening = true;
  readonly #deps: GenerationDeps;
  readonly #models: readonly ReadModel[];
  readonly #options: LiveOptions;
  #generation: Generation | null = null;
  /** The handle whose rows were counted. */
  #counted: Db | null = null;
  #usedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: GenerationDeps, models: readonly ReadModel[], options: LiveOptions) {
    this.#deps = deps;
    this.#models = models;
    this.#options = options;
  }

  /** Waits until the log has an event; null: it has none at the end. Throws `RowsDoubted`: the next call replaces the rows. */
  async open(): Promise<OpenRows | null> {
    try {
      return await this.#open();
    } catch (error) {
      this.isOpening = false;
      throw error;
    }
  }

  async #open(): Promise<OpenRows | null> {
    const { store, clock } = this.#deps;
    const first = await firstEvent(this.#deps.log, this.#options.ending, () => {
      this.isOpening = false;
      this.#options.onEmptyLog();
    });
    if (first === null) return null;
    const generation = generationOf(first, store.layout.version, this.#models);
    this.#generation = generation;
    const shared = await store.shared();
    this.isOpening = true;
    const schema = (await currentSchema(shared, generation)) ?? (await this.#build(generation));
    const db = await store.open(schema);
    const head = await this.#comparedHead(schema, db);
    await this.#markUsed(shared, schema);
    // Embedded rows are no evidence: a start may delete them, and the operator decides by the file beside the event log.
    if (store.disposable) await shared.transaction((tx) => pruneGenerations(tx, schema, 0, { lost: true }));
    else this.#options.onCompared(await checkpointsElsewhere(shared, generation, schema));
    if (db === this.#counted) return { schema, db, head };
    // Last: it takes seconds per million jobs, and new calls wait for the comparison.
    const loss = await findLoss(db, schema, tableShapes(this.#models), () => clock.sleep(0));
    if (loss !== null) return this.#replace(schema, 'incomplete', { loss });
    this.#counted = db;
    // Another process may have projected meanwhile.
    return { schema, db, head: await this.#comparedHead(schema, db) };
  }

  /** Whether rows and handle are still those of the generation; marks them as used. */
  async isCurrent({ schema, db }: OpenRows): Promise<boolean> {
    const { store, clock, logger } = this.#deps;
    if ((await store.open(schema)) !== db) return false;
    if (store.disposable) return true;
    const shared = await store.shared();
    if (this.#generation === null || (await currentSchema(shared, this.#generation)) !== schema) return false;
    if (clock.monotonic() - this.#usedAt >= MARK_USED_MS) {
      await this.#markUsed(shared, schema);
      const dropped = await shared.transaction((tx) => pruneGenerations(tx, schema, UNUSED_MS));
      if (dropped.length > 0)
        logger.info('dropped read models that no process has used for 7 days', { dropped });
    }
    return true;
  }

  /** Where a store has failed, its rows are counted again. */
  countAgain(): void {
    this.#counted = null;
  }

  /** The schema of new rows, or of those that another process has built meanwhile. */
  async #build(generation: Generation): Promise<string> {
    const { store } = this.#deps;
    await this.#options.beforeBuild();
    const create = { statements: store.layout.statements, models: this.#models };
    const shared = await store.shared();
    return shared.transaction((tx) => createGeneration(tx, generation, create, 'current'));
  }

  /** Throws `RowsDoubted` if the log lacks the rows' last event, or rows were deleted. */
  async #comparedHead(schema: string, db: Db): Promise<ProjectionHead> {
    const { log, clock } = this.#deps;
    const { ending, onDoubt } = this.#options;
    const missing = await findMissingTable(db, schema, tableShapes(this.#models));
    if (missing !== null) return this.#replace(schema, 'incomplete', { loss: missing });
    const head = await readHead(db);
    if (!(await logHolds(log, head))) {
      // Another process may serve an older state of the log for a moment: what is missing must stay missing.
      onDoubt();
      await clock.sleep(LOST_AFTER_MS, ending);
      if (ending.aborted || (await logHolds(log, head))) throw new RowsDoubted();
      return this.#replace(schema, 'lost', { position: head.position });
    }
    return head.loss === null ? head : this.#replace(schema, 'incomplete', { loss: head.loss });
  }

  async #replace(
    schema: string,
    state: 'lost' | 'incomplete',
    fields: Record<string, unknown>,
  ): Promise<never> {
    const { store, logger } = this.#deps;
    this.#options.onDoubt();
    logger.warn(REPLACED[state], fields);
    await (await store.shared()).transaction((tx) => retire(tx, schema, state));
    throw new RowsDoubted();
  }

  async #markUsed(shared: Db, schema: string): Promise<void> {
    this.#usedAt = this.#deps.clock.monotonic();
    await markUsed(shared, schema);
  }
}

/** Waits for it; null: there is none at the end. */
async function firstEvent(
  log: GenerationDeps['log'],
  ending: Cancel,
  onEmpty: () => void,
): Promise<string | null> {
  const [first] = await log.readAll({ after: null, max: 1 });
  if (first !== undefined) return first.id;
  for await (const message of log.subscribeAll({ after: null, signal: ending })) {
    if (message.kind === 'event') return message.event.id;
    if (message.kind === 'caught_up') onEmpty();
  }
  return null;
}

const REPLACED = {
  lost: 'the read models contain events that are missing from the event log: building new ones',
  incomplete: 'the read models have lost rows: building new ones',
} as const;
