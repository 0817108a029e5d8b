// The newest checkpoint, kept outside of the event log: evidence against a log that was restored from an older backup. It
// is only replaced by a checkpoint of a larger tree.
import type { CodeOf } from '#src/domain/monitoring/conditions.ts';
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

/** Problems of the store are reported until a write succeeds, and never thrown. */
export function rollbackCheck({
  checkpointKeep: file,
  checkpointKeys,
  primitives,
  logger,
}: RollbackCheckDeps) {
  function report(problem: CodeOf<'checkpointFile'>, cause?: unknown): null {
    logger.condition('checkpointFile', problem, { hint: `It is ${file?.location}.` }, cause);
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
        return (await own(note, origin, file.location)) ?? report('foreign');
      } catch (cause) {
        return report('unreadable', cause);
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
        if (found !== null && there?.origin !== origin) return report('foreign');
        // Of two processes that write at once the smaller one may win, until the next checkpoint.
        if (there === null || there.size < size) {
          await file.write(note);
          logger.condition('checkpointFile', null);
        }
        return kept;
      } catch (cause) {
        return report('unwritable', cause);
      }
    },
  };
}
