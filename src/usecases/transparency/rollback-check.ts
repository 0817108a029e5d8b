// The checkpoint that is kept outside of the event log: the word against a log that was restored from an older backup.
// It only ever moves to a larger tree, and what is not a checkpoint of this log is never written over.

import type { Primitives } from '#src/domain/receipt/verify.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { parseCheckpoint, verifyOwnCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import type { CheckpointKeep } from '#src/ports/checkpoint-keep.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { StoredNote } from './signed-checkpoint.ts';

export type KeptCheckpointDeps = {
  /** null: this deployment has no state of its own beside the event log. */
  readonly checkpointKeep: CheckpointKeep | null;
  /** Of the event log, and those that this process holds: a restored log may have forgotten the newest. */
  readonly checkpointKeys: () => Promise<readonly KeyRecord[]>;
  readonly primitives: Primitives;
  readonly logger: Logger;
};

export type KeptCheckpoint = {
  /** What is kept, where it is of this log. Trouble is told, never thrown. */
  recall(origin: string): Promise<StoredNote | null>;
  /** Keeps it, unless one as large is kept. Answers where it is kept now; null: nowhere. */
  keep(stored: StoredNote): Promise<string | null>;
};

/** The note, where a checkpoint key of this relay has signed it under that origin; else null. */
export async function ownNote(
  note: string,
  origin: string,
  { checkpointKeys, primitives }: Pick<KeptCheckpointDeps, 'checkpointKeys' | 'primitives'>,
): Promise<StoredNote | null> {
  // Of a key that was compromised later, too: what it signed was given out.
  const found = await verifyOwnCheckpoint(note, await checkpointKeys(), primitives);
  return found?.origin === origin ? { origin, size: found.size, root: found.root, note } : null;
}

export function keptCheckpoint(deps: KeptCheckpointDeps): KeptCheckpoint {
  const { checkpointKeep: place, logger } = deps;
  /** `foreign`: something else stands there. */
  const state = { foreign: false, failing: false };

  function foreign(where: CheckpointKeep): null {
    state.foreign = true;
    logger.warn(
      `${where.place} holds no checkpoint of this transparency log: it is left alone, and none is kept`,
    );
    return null;
  }

  return {
    async recall(origin) {
      if (place === null) return null;
      try {
        const note = await place.read();
        return note === null ? null : ((await ownNote(note, origin, deps)) ?? foreign(place));
      } catch (cause) {
        logger.warn(`${place.place} cannot be read: a restored event log would not be noticed by it`, {
          cause,
        });
        return null;
      }
    },
    async keep({ origin, size, note }) {
      if (place === null || state.foreign) return null;
      try {
        if ((await ownNote(note, origin, deps)) === null) return null;
        // Another process may have come further. Where two write at once the smaller may stay: until the next one.
        const found = await place.read();
        const there = found === null ? null : parseCheckpoint(found);
        if (found !== null && there?.origin !== origin) return foreign(place);
        if (there === null || there.size < size) await place.write(note);
        state.failing = false;
        return place.place;
      } catch (cause) {
        if (!state.failing) logger.warn(`the newest checkpoint cannot be kept in ${place.place}`, { cause });
        state.failing = true;
        return null;
      }
    },
  };
}
