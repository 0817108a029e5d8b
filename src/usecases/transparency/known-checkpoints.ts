// What this process knows of the checkpoints: read from the event log, and from what is kept outside of it.
import { toBase64 } from '#src/domain/encoding.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { STREAM } from '#src/domain/events.ts';
import type { CodeOf } from '#src/domain/monitoring/conditions.ts';
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import { parseCheckpoint, verifyOwnCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import type { CheckpointStore } from '#src/ports/checkpoint-store.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import { findEvent } from '#src/usecases/process/read-events.ts';
import {
  type CheckpointFact,
  evolveCheckpoints,
  NO_CHECKPOINTS,
  problemOf,
  quorumAhead,
  type StoredNote,
} from './checkpoint-state.ts';

export type KnownCheckpointsDeps = RollbackCheckDeps & { readonly log: Pick<EventLog, 'readStream'> };

/** Its functions throw what a read of the log throws. */
export function knownCheckpoints(deps: KnownCheckpointsDeps) {
  const { log, logger } = deps;
  const rollback = rollbackCheck(deps);
  let state = NO_CHECKPOINTS;

  function record(fact: CheckpointFact): void {
    const before = problemOf(state);
    state = evolveCheckpoints(state, fact);
    const problem = problemOf(state);
    if (problem === before) return;
    const place = problem === 'checkpoint_forgotten' ? hint() : '';
    const facts = place === '' ? {} : { hint: place };
    logger.condition('transparencyLog', problem, { ...facts, stream: STREAM.receiptLog });
  }

  /** Where the missing checkpoint is known from, and what it means to continue without it. */
  function hint(): string {
    const { newest, proven, forgotten, claims } = state;
    const place = newest?.place ?? null;
    if (forgotten && proven !== null && proven.size === newest?.size) {
      const kept = place === null ? '' : `, and removing ${place},`;
      return `The witness ${proven.witness} publishes a checkpoint of ${proven.size} leaves that this log has signed: ${PUT_BACK}; removing the witness from WITNESS_POLICY_FILE${kept} and starting again ${CONTRADICTED}`;
    }
    if (forgotten)
      return place === null ? '' : `It is kept in ${place}: removing that and starting again ${CONTRADICTED}`;
    const [fork] = claims.forked;
    if (fork !== undefined)
      return `The witness ${fork.witness} publishes a checkpoint of ${fork.size} leaves that this log has signed, and that is of another history: a copy of the event log was continued elsewhere. Continue that one; removing the witness from WITNESS_POLICY_FILE and starting again ${CONTRADICTED}`;
    const stated = quorumAhead(state).map(({ witness, size }) => `${witness} ${size}`);
    return `A quorum of the witnesses states that they have cosigned more leaves than the ${newest?.size ?? 0} of the newest checkpoint here (${stated.join(', ')}), and none publishes a checkpoint that proves it: ${PUT_BACK}; removing them from WITNESS_POLICY_FILE and starting again continues a history that their cosignatures may contradict`;
  }

  /**
   * Compares what is kept outside of the event log, and in `elsewhere`, with the log; needs no rows. Returns the last event
   * of the log's stream, null if there is none. `stored` null: it cannot be read. `known`: the newest before.
   */
  async function refresh(elsewhere: readonly string[] = []) {
    if (state.log === null) {
      const [first] = await log.readStream(STREAM.receiptLog, { max: 1 });
      if (first === undefined) return null;
      record({ kind: 'log_found', origin: storedNote(first)?.origin ?? null });
    }
    await recall(elsewhere);
    // What is known now was published before the log is read, which therefore contains it.
    const { newest: known } = state;
    const [last] = await log.readStream(STREAM.receiptLog, { direction: 'backwards', max: 1 });
    if (last === undefined) return null;
    const stored = storedNote(last);
    if (stored !== null) {
      record({ kind: 'log_read', last: stored, known });
      await remember(stored);
    }
    return { revision: last.revision, position: last.position, stored, known };
  }

  /** Reads what is kept outside of the event log. */
  async function recall(elsewhere: readonly string[]): Promise<void> {
    const origin = state.log?.origin ?? null;
    if (origin === null) return;
    const notes = elsewhere.map((note) => rollback.own(note, origin, ELSEWHERE));
    // The file comes last: it is what an operator can remove.
    for (const checkpoint of await Promise.all([...notes, rollback.read(origin)]))
      if (checkpoint !== null) record({ kind: 'checkpoint_found', checkpoint });
  }

  /** What was published once stays the newest, whatever the log contains later. */
  async function remember(stored: StoredNote): Promise<void> {
    if (stored.origin !== state.log?.origin || stored.size <= (state.newest?.size ?? -1)) return;
    record({ kind: 'checkpoint_found', checkpoint: stored });
    const checkpoint = await rollback.write(stored);
    if (checkpoint !== null) record({ kind: 'checkpoint_found', checkpoint });
  }

  return { state: () => state, record, refresh, remember };
}

/** Rows of a history that the event log no longer has show what it once contained. */
const ELSEWHERE = 'another generation of the read models, which `relay rebuild --prune` drops';

const PUT_BACK = 'put the event log back from its newest backup';
const CONTRADICTED = 'continues a history that every published checkpoint contradicts';

/** null if the event is malformed, or its note differs from it. Throws `EventOfNewerRelease`. */
function storedNote(recorded: RecordedEvent): StoredNote | null {
  const event = findEvent(recorded);
  if (event?.type !== 'CheckpointSigned') return null;
  const { note, origin, size, root, signedAt } = event.data;
  const head = parseCheckpoint(note);
  if (head === null || head.origin !== origin) return null;
  const isSame = String(head.size) === size && toBase64(head.root) === root;
  return isSame ? { ...head, note, place: null, signedAt } : null;
}

type RollbackCheckDeps = {
  /** null: this process has no state of its own (EventStoreDB). */
  readonly checkpointKeep: CheckpointStore | null;
  /** Those of the event log and those of the key file: a restored log may lack the newest. */
  readonly checkpointKeys: () => readonly KeyRecord[];
  readonly primitives: Primitives;
  readonly logger: Logger;
};

/**
 * The newest checkpoint, kept outside of the event log: evidence against a log that was restored from an older backup. It is
 * only replaced by a checkpoint of a larger tree. Problems of the store are reported until a write succeeds, and never thrown.
 */
function rollbackCheck({ checkpointKeep: file, checkpointKeys, primitives, logger }: RollbackCheckDeps) {
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
