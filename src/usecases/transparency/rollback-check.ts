// The newest checkpoint, kept outside of the event log: evidence against a log that was restored from an older backup. It
// is only replaced by a checkpoint of a larger tree.
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import { parseCheckpoint, verifyOwnCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import type { CheckpointStore } from '#src/ports/checkpoint-store.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { StoredNote } from './checkpoint-state.ts';

export type RollbackCheckDeps = {
  /** null: this process has no state of its own (EventStoreDB). */
  readonly checkpointKeep: CheckpointStore | null;
  /** Those of the event log and those of the key file: a restored log may lack the newest. */
  readonly checkpointKeys: () => readonly KeyRecord[];
  readonly primitives: Primitives;
  readonly logger: Logger;
};

/** Problems of the store are logged, once until a write succeeds, and never thrown. */
export function rollbackCheck({
  checkpointKeep: file,
  checkpointKeys,
  primitives,
  logger,
}: RollbackCheckDeps) {
  let warned: string | null = null;

  function warn(problem: string, fields: { readonly cause?: unknown } = {}): null {
    if (warned !== problem) logger.warn(`${file?.location} ${problem}`, fields);
    warned = problem;
    return null;
  }

  /** The checkpoint of this note, if it is one of this log; also by a key that was compromised later: it was published. */
  async function own(note: string, origin: string, place: string): Promise<StoredNote | null> {
    const found = await verifyOwnCheckpoint(note, checkpointKeys(), primitives);
    return found?.origin === origin
      ? { origin, size: found.size, root: found.root, note, place, signedAt: null }
      : null;
  }

  return {
    own,
    /** The checkpoint in the store, if it is one of this log. */
    async read(origin: string): Promise<StoredNote | null> {
      try {
        const note = (await file?.read()) ?? null;
        if (file === null || note === null) return null;
        return (await own(note, origin, file.location)) ?? warn(FOREIGN);
      } catch (cause) {
        const problem = 'cannot be read: it cannot prove that the event log was restored from a backup';
        return warn(problem, { cause });
      }
    },
    /** Replaces a smaller one of the same log; null if it is not kept. */
    async write({ note, origin, size }: StoredNote): Promise<StoredNote | null> {
      if (file === null) return null;
      try {
        const kept = await own(note, origin, file.location);
        if (kept === null) return null;
        const found = await file.read();
        const there = found === null ? null : parseCheckpoint(found);
        if (found !== null && there?.origin !== origin) return warn(FOREIGN);
        // Of two processes that write at once the smaller one may win, until the next checkpoint.
        if (there === null || there.size < size) await file.write(note);
        warned = null;
        return kept;
      } catch (cause) {
        return warn('cannot be written: the newest checkpoint is not kept', { cause });
      }
    },
  };
}

const FOREIGN = 'contains no checkpoint of this transparency log: it is left unchanged, and none is kept';
