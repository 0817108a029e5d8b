// One batch: events in, rows and checkpoint out, in one transaction under the projector's lock. A projector that was
// overtaken, however long it slept, writes nothing.

import { type RecordedEvent, readEvent } from '#src/domain/event-codec.ts';
import type { DomainEvent, EventOf } from '#src/domain/events.ts';
import { type Checkpoint, readCheckpoints, tryProjectorLock, writeBatch } from './checkpoint.ts';
import { foldChanges, type JudgedEvent, keysOf, planChanges } from './fold.ts';
import { withLeaves } from './leaves.ts';
import type { ReadModel } from './registry.ts';
import { type Db, loadRows, type TableShape, writeParts } from './rows.ts';
import { isNewer, noneNewer, readVersionGaps, type VersionGap, writeModelVersions } from './versions.ts';

/**
 * Whether a receipt's signature is valid and its key was, at its issue, by the key events that stand before `position`
 * in the log: the same answer whenever the log is read.
 */
export type JudgeReceipt = (receipt: EventOf<'ReceiptSigned'>['data'], position: string) => Promise<boolean>;

/** Decodes and judges; what is unknown, malformed or not to be stored is passed over. Leaves get their place later. */
export async function judgeEvents(
  recorded: readonly RecordedEvent[],
  judgeReceipt: JudgeReceipt,
): Promise<readonly JudgedEvent[]> {
  const judged: JudgedEvent[] = [];
  for (const { type, data, position } of recorded) {
    const event = readEvent({ type, data });
    if (event === null) continue;
    const facts = { receiptVerified: await receiptVerified(event, position), leaf: null };
    judged.push({ position, event, facts });
  }
  return judged;

  async function receiptVerified(event: DomainEvent, position: string): Promise<boolean> {
    return event.type === 'ReceiptSigned' && (await judgeReceipt(event.data, position));
  }
}

/**
 * `projected`: rows and checkpoint stand at the batch's end. `busy`: another holds the lock. `elsewhere`: the checkpoint
 * was not at `from`; it has been read again and is `checkpoint` now. `superseded`: rows of a newer version stand.
 */
export type BatchOutcome =
  | { readonly outcome: 'projected' | 'busy' }
  | { readonly outcome: 'elsewhere'; readonly checkpoint: Checkpoint | null }
  | { readonly outcome: 'superseded'; readonly gaps: readonly VersionGap[] };

export type Projector = {
  readonly db: Db;
  readonly models: readonly ReadModel[];
  /** Names the models' checkpoint. */
  readonly set: string;
  readonly shapes: readonly TableShape[];
};

/** `told`: what of the models' rows stood there when the session began; their events up to it change nothing. */
export async function projectBatch(
  { db, models, set, shapes }: Projector,
  told: ReadonlyMap<string, string>,
  events: readonly JudgedEvent[],
  from: Checkpoint | null,
  to: Checkpoint,
): Promise<BatchOutcome> {
  // Of these no row stands yet: they begin with this batch, as this version tells them.
  const begun = from === null ? models.filter(({ name }) => !told.has(name)) : [];
  const standing = models.filter((model) => !begun.includes(model));
  try {
    return await db.transaction(async (tx) => {
      if (!(await tryProjectorLock(tx))) return { outcome: 'busy' };
      // Later on a set's own checkpoint tells of rows that were taken back; before the first batch it has none.
      if (from === null && !(await stillTold(tx, told, begun))) throw new Overtaken();
      await writeModelVersions(tx, begun);
      const grown = await withLeaves(shapes, events, (keys) => loadRows(tx, shapes, keys));
      const changes = planChanges(models, grown, told);
      const rows = await loadRows(tx, shapes, keysOf(changes));
      const parts = writeParts(shapes, foldChanges(rows, changes));
      // In the statement that writes: under the lock, so no rebuild by a newer version comes between.
      if (!(await writeBatch(tx, set, parts, from, to, noneNewer(standing)))) throw new Overtaken();
      return { outcome: 'projected' };
    });
  } catch (error) {
    if (!(error instanceof Overtaken)) throw error;
    const now = await readCheckpoints(db);
    const gaps = await readVersionGaps(db, models, now.told);
    return gaps.some(isNewer)
      ? { outcome: 'superseded', gaps }
      : { outcome: 'elsewhere', checkpoint: now.own(set) };
  }
}

/** What stood at the beginning of the session stands still, and of `begun` nobody has begun to tell meanwhile. */
async function stillTold(
  tx: Db,
  told: ReadonlyMap<string, string>,
  begun: readonly ReadModel[],
): Promise<boolean> {
  const now = (await readCheckpoints(tx)).told;
  const stands = [...told].every(([model, position]) => (now.get(model) ?? '') >= position);
  return stands && !begun.some(({ name }) => now.has(name));
}

/** Rolls the transaction back. */
class Overtaken extends Error {}
