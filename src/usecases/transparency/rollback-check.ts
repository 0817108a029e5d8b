// The newest checkpoint, kept in a file beside the event log's own storage: evidence against an event log that was
// restored from an older backup. It is only replaced by a checkpoint of a larger tree.
import type { Primitives } from '#src/domain/receipt/verify.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { parseCheckpoint, type TreeHead, verifyOwnCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import type { CheckpointKeep } from '#src/ports/checkpoint-keep.ts';
import type { Logger } from '#src/ports/logger.ts';

/** A checkpoint with the signed note that it was parsed from. */
export type StoredNote = TreeHead & { readonly note: string };

export type RollbackCheckDeps = {
  readonly checkpointKeep: CheckpointKeep;
  /** Those of the event log and those of the key file: a restored log may lack the newest. */
  readonly checkpointKeys: () => Promise<readonly KeyRecord[]>;
  readonly primitives: Primitives;
  readonly logger: Logger;
};

export type RollbackCheck = {
  /** The checkpoint in the file, if it is one of this log. Problems are logged, never thrown. */
  read(origin: string): Promise<StoredNote | null>;
  /** Replaces a smaller one of the same log. Problems are logged, never thrown. */
  write(stored: StoredNote): Promise<void>;
  /** Where this note is kept, a noun with its article; null if it is not. */
  placeOf(note: string): string | null;
};

export function rollbackCheck(deps: RollbackCheckDeps): RollbackCheck {
  const { checkpointKeep: file, checkpointKeys, primitives, logger } = deps;
  let held: string | null = null;
  let warned: string | null = null;

  /** Once, until a call succeeds. */
  function warn(problem: string, fields: { readonly cause?: unknown } = {}): null {
    if (warned !== problem) logger.warn(`${file.place} ${problem}`, fields);
    warned = problem;
    return null;
  }

  /** Also if the key was compromised later: what it signed was published. */
  const isOwn = async ({ note, origin }: Pick<StoredNote, 'note' | 'origin'>): Promise<boolean> =>
    (await verifyOwnCheckpoint(note, await checkpointKeys(), primitives))?.origin === origin;

  return {
    async read(origin) {
      try {
        const note = await file.read();
        if (note === null) return null;
        const head = parseCheckpoint(note);
        if (head === null || !(await isOwn({ note, origin }))) return warn(FOREIGN);
        held = note;
        return { ...head, note };
      } catch (cause) {
        return warn('cannot be read: it cannot prove that the event log was restored from a backup', {
          cause,
        });
      }
    },
    async write(stored) {
      try {
        if (!(await isOwn(stored))) return;
        const found = await file.read();
        const there = found === null ? null : parseCheckpoint(found);
        if (found !== null && there?.origin !== stored.origin) return void warn(FOREIGN);
        // Of two processes that write at once the smaller one may win, until the next checkpoint.
        if (there === null || there.size < stored.size) await file.write(stored.note);
        held = stored.note;
        warned = null;
      } catch (cause) {
        warn('cannot be written: the newest checkpoint is not kept', { cause });
      }
    },
    placeOf: (note) => (note === held ? file.place : null),
  };
}

const FOREIGN = 'contains no checkpoint of this transparency log: it is left unchanged, and none is kept';
