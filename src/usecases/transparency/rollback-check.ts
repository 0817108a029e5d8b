// The newest checkpoint, kept outside of the event log: evidence against a log that was restored from an older backup. It
// is only replaced by a checkpoint of a larger tree.
import type { Primitives } from '#src/domain/receipt/report.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { parseCheckpoint, type TreeHead, verifyOwnCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import type { CheckpointStore } from '#src/ports/checkpoint-store.ts';
import type { Logger } from '#src/ports/logger.ts';

/** A checkpoint with the signed note that it was parsed from. */
export type StoredNote = TreeHead & { readonly note: string };

export type RollbackCheckDeps = {
  /** null: this process has no state of its own (EventStoreDB). */
  readonly checkpointKeep: CheckpointStore | null;
  /** Those of the event log and those of the key file: a restored log may lack the newest. */
  readonly checkpointKeys: () => Promise<readonly KeyRecord[]>;
  readonly primitives: Primitives;
  readonly logger: Logger;
};

export type RollbackCheck = {
  /** The checkpoint of this note, if it is one of this log; `place`: where it was found, a noun with its article. */
  own(note: string, origin: string, place: string): Promise<StoredNote | null>;
  /** The checkpoint in the file, if it is one of this log. Problems are logged, never thrown. */
  read(origin: string): Promise<StoredNote | null>;
  /** Replaces a smaller one of the same log. Problems are logged, never thrown. */
  write(stored: StoredNote): Promise<void>;
  /** Where this note was read or written last; null: nowhere. */
  placeOf(note: string): string | null;
};

export function rollbackCheck(deps: RollbackCheckDeps): RollbackCheck {
  const { checkpointKeep: file, checkpointKeys, primitives, logger } = deps;
  let held: { readonly note: string; readonly place: string } | null = null;
  let warned: string | null = null;

  /** Once, until a write succeeds. */
  function warn(problem: string, fields: { readonly cause?: unknown } = {}): null {
    if (warned !== problem) logger.warn(`${file?.location} ${problem}`, fields);
    warned = problem;
    return null;
  }

  /** Also by a key that was compromised later: what it signed was published. */
  async function verified(note: string, origin: string): Promise<StoredNote | null> {
    const found = await verifyOwnCheckpoint(note, await checkpointKeys(), primitives);
    return found?.origin === origin ? { origin, size: found.size, root: found.root, note } : null;
  }

  async function own(note: string, origin: string, place: string): Promise<StoredNote | null> {
    const found = await verified(note, origin);
    if (found !== null) held = { note, place };
    return found;
  }

  return {
    own,
    async read(origin) {
      try {
        const note = (await file?.read()) ?? null;
        if (file === null || note === null) return null;
        return (await own(note, origin, file.location)) ?? warn(FOREIGN);
      } catch (cause) {
        return warn('cannot be read: it cannot prove that the event log was restored from a backup', {
          cause,
        });
      }
    },
    async write({ note, origin, size }) {
      if (file === null) return;
      try {
        if ((await verified(note, origin)) === null) return;
        const found = await file.read();
        const there = found === null ? null : parseCheckpoint(found);
        if (found !== null && there?.origin !== origin) return void warn(FOREIGN);
        // Of two processes that write at once the smaller one may win, until the next checkpoint.
        if (there === null || there.size < size) await file.write(note);
        held = { note, place: file.location };
        warned = null;
      } catch (cause) {
        warn('cannot be written: the newest checkpoint is not kept', { cause });
      }
    },
    placeOf: (note) => (note === held?.note ? held.place : null),
  };
}

const FOREIGN = 'contains no checkpoint of this transparency log: it is left unchanged, and none is kept';
