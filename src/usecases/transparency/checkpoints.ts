// The checkpoints of the transparency log. The first one, over no leaves, gives the log its name. Each later one is over
// the tree of the read models, and is signed only if the tree provably extends the last one. Consistency is checked
// against the local tree only; state reported by other processes is not trusted.
import { fromBase64url, toBase64, toHex } from '#src/domain/encoding.ts';
import { type EventOf, event, STREAM } from '#src/domain/events.ts';
import type { ReceiptLog } from '#src/domain/receipt/payload.ts';
import {
  checkpointText,
  type NextCheckpoint,
  nextCheckpoint,
  originOf,
  TRANSPARENCY,
  type TreeHead,
  verifyOwnCheckpoint,
} from '#src/domain/transparency/checkpoint.ts';
import { verifyConsistencyProof } from '#src/domain/transparency/merkle.ts';
import { ED25519, type NoteKey, noteKeyId, signNote } from '#src/domain/transparency/note.ts';
import { consistencyProof, type ReadTile, TileMissing, treeReader } from '#src/domain/transparency/tiles.ts';
import { EMPTY_TREE, rootOf, type Tree } from '#src/domain/transparency/tree.ts';
import { iso } from '#src/lib/iso.ts';
import { Cancel } from '#src/lib/time.ts';
import { type AbortSignalLike, EventLogUnavailable } from '#src/ports/event-log.ts';
import type { CheckpointKey, CheckpointSigner } from '#src/ports/signer.ts';
import { appendUnlessOvertaken, envelope, type JournalDeps } from '#src/usecases/process/stream.ts';
import { repeated } from '#src/usecases/process/worker.ts';
import type { KeyDirectory } from '#src/usecases/signing-keys/key-ring.ts';
import { checkpointStatus, dueLook, problemOf, type RowsNow, type StoredNote } from './checkpoint-state.ts';
import { type KnownCheckpointsDeps, knownCheckpoints } from './known-checkpoints.ts';
import { witnessEvidence } from './witness-evidence.ts';

type CheckpointDeps = JournalDeps &
  KnownCheckpointsDeps & {
    readonly checkpointSigner: CheckpointSigner;
    readonly directory: Pick<KeyDirectory, 'refresh'>;
    /** Of an event log that begins after another was given up (`successorName`). */
    readonly successor?: string | null;
    /** Absent: the log has none, and one key signs each checkpoint. `accept`: whether all know a key, by its note key id (hex). */
    readonly witnesses?: { accept(key: string): boolean } | null;
  };

/** The tree of the read models: all leaves up to `position`, and none after it. */
export type ProjectedTree = {
  readonly tree: Tree;
  readonly position: string | null;
  readonly readTile: ReadTile;
};

/** The read models' part. Only `withTree` throws. */
export type TreeRows = {
  position(): RowsNow['position'];
  /** Resolves when `position()` is no longer `position`, and when `signal` aborts. */
  movedFrom(position: RowsNow['position'], signal: AbortSignalLike): Promise<void>;
  role(): RowsNow['role'];
  /** Whether the rows have reached the event log's head; waits up to a second for it. */
  reachedHead(): Promise<boolean>;
  /** Notes of checkpoints in rows of another history, if any. */
  checkpointsElsewhere(): readonly string[];
  /** Runs `work` on one snapshot. `work` neither reads nor waits elsewhere. */
  withTree<T>(work: (projected: ProjectedTree) => Promise<T>): Promise<T>;
};

export type Checkpoints = Awaited<ReturnType<typeof openCheckpoints>>;

/** Reads the log's state. Throws what a read of the log throws. */
export async function openCheckpoints(deps: CheckpointDeps) {
  const { clock, directory, checkpointSigner, primitives } = deps;
  const known = knownCheckpoints(deps);
  const { state, record } = known;

  /** Begins the log if there is none and this process has a checkpoint key. `host`: of the base URL, with its port. */
  async function begin(host: string): Promise<void> {
    const here = originOf(host, deps.successor);
    try {
      const key = checkpointSigner.current();
      if (state().log === null && (await known.refresh()) === null && key !== null) {
        await append(deps, { origin: here, size: 0, root: rootOf(EMPTY_TREE) }, key, 'no_stream');
        // Also if the first one is another process's, or our own of an earlier call whose answer was lost.
        await known.refresh();
      }
    } catch (error) {
      if (!(error instanceof EventLogUnavailable)) throw error;
    }
    const named = state().log?.origin ?? here;
    if (named === here || named.startsWith(`${originOf(host)}/`)) return;
    const message = 'the transparency log keeps the name of its first checkpoint, not that of this base URL';
    deps.logger.warn(message, { named, here });
  }

  /**
   * Compares the last checkpoint with the tree; with `maySign`, signs a new one if leaves wait. Throws if log or rows
   * fail. `overtaken`: another process signed meanwhile.
   */
  async function look(
    rows: Pick<TreeRows, 'checkpointsElsewhere' | 'withTree'>,
    maySign: boolean,
  ): Promise<NextCheckpoint['kind'] | 'signed' | 'overtaken'> {
    const last = await known.refresh(rows.checkpointsElsewhere());
    if (last === null) return 'rest';
    const { stored, revision } = last;
    const head = await rows.withTree((projected) => headOf(projected, stored));
    const verdict = nextCheckpoint({
      last: stored && { ...stored, position: last.position },
      signed: stored !== null && (await isSigned(stored)),
      known: last.known,
      rows: head,
    });
    const { position, size, root } = head;
    record({ kind: 'compared', verdict, revision, position, at: clock.monotonic() });
    const isForgotten = problemOf(state()) === 'checkpoint_forgotten';
    const key = maySign && verdict.kind === 'sign' && !isForgotten ? checkpointSigner.current() : null;
    if (key === null || stored === null) return verdict.kind;
    const next = await append(deps, { origin: stored.origin, size, root }, key, revision);
    if (next === null) return 'overtaken';
    record({ kind: 'signed', position });
    await known.remember(next);
    return 'signed';
  }

  /** By a checkpoint key of this relay; also by one that was compromised later, whose last checkpoint must be extended. */
  async function isSigned({ note, origin }: StoredNote): Promise<boolean> {
    // Another process may have signed with a key that was announced a moment ago.
    const keys = await directory.refresh();
    return origin === state().log?.origin && (await verifyOwnCheckpoint(note, keys, primitives)) !== null;
  }

  /** What is due now. `isLast`: at shutdown, when only a last checkpoint over all events is. */
  async function lookIfDue(host: string, rows: TreeRows, isLast: boolean): Promise<void> {
    if (state().log === null && !isLast) await begin(host);
    if (isLast && (state().log === null || !(await rows.reachedHead()))) return;
    const due = dueLook(state(), { position: rows.position(), role: rows.role() }, clock.monotonic());
    if (due === 'sign' || (due === 'compare' && !isLast)) await look(rows, due === 'sign');
  }

  await known.refresh();
  return {
    /** The newest checkpoint that this process has seen; null while there is no log. */
    latest: () => state().newest,
    /** What a receipt states about its log; null while there is no log. */
    promised: (): ReceiptLog | null => {
      const origin = state().log?.origin;
      return origin ? { origin, mmdSeconds: TRANSPARENCY.mmdSeconds } : null;
    },
    /** As of the last comparisons; null before the first, unless a checkpoint is forgotten. */
    standing: () => checkpointStatus(state(), clock.monotonic()),
    /** false: the event log lacks events that this relay has acknowledged, and no call is taken. */
    isWhole: () => problemOf(state()) !== 'checkpoint_forgotten',
    begin,
    compareKept: async (elsewhere: readonly string[]) => void (await known.refresh(elsewhere)),
    ...witnessEvidence({ known, directory, checkpointKeys: deps.checkpointKeys, primitives }),
    look,
    keep: (host: string, rows: TreeRows) =>
      keepLooking(deps, async (stopping) => {
        const { log, settled } = state();
        // While the rows stand still, nothing wakes the process.
        if (log !== null && stopping !== null) await rows.movedFrom(settled, stopping);
        if (stopping?.aborted !== true) await lookIfDue(host, rows, stopping === null);
      }),
  };
}

/** Well within TRANSPARENCY.checkpointMs. */
const LOOK_MS = 2000;
/** For the last checkpoint at shutdown. */
const LAST_MS = 2000;

const UNREADABLE = { message: 'the transparency log cannot be read', level: 'warn' } as const;

/**
 * Looks every 2 s until `stop`, which looks a last time for at most 2 s: calls without an answer by then end with the store.
 * `look` gets what aborts when it has to end; null: it is the last one.
 */
function keepLooking(
  { clock, logger }: Pick<JournalDeps, 'clock' | 'logger'>,
  look: (stopping: AbortSignalLike | null) => Promise<void>,
): { stop(): Promise<void> } {
  const stopping = new Cancel();
  const looking = (isLast: boolean) =>
    repeated(
      { clock, logger, stopping: isLast ? undefined : stopping },
      { firstMs: LOOK_MS, pauseMs: LOOK_MS, run: () => look(isLast ? null : stopping), failed: UNREADABLE },
    );
  const running = looking(false).run();
  return {
    async stop() {
      stopping.abort();
      const timer = new Cancel();
      await Promise.race([running.then(() => looking(true).pass()), clock.sleep(LAST_MS, timer)]);
      timer.abort();
    },
  };
}

/** The tree's head, and whether its tiles prove, as to any client, that it extends the last checkpoint. */
async function headOf({ tree, position, readTile }: ProjectedTree, last: StoredNote | null) {
  const head = { size: tree.size, root: rootOf(tree), position };
  if (last === null || head.size < last.size) return { ...head, extendsLast: false };
  try {
    const proof = await consistencyProof(treeReader(readTile), last.size, head.size);
    const claim = { from: last.size, to: head.size, fromRoot: last.root, toRoot: head.root, proof };
    return { ...head, extendsLast: verifyConsistencyProof(claim) };
  } catch (error) {
    if (!(error instanceof TileMissing)) throw error;
    return { ...head, extendsLast: false };
  }
}

/** null: `last` is no longer the last. The first checkpoint is appended once: no start waits for the event log. */
async function append(deps: CheckpointDeps, head: TreeHead, key: CheckpointKey, last: bigint | 'no_stream') {
  const also = replacedKeys(deps, key, head.origin);
  const event = await signedCheckpoint(head, key, deps.clock.now(), also);
  const events = envelope(deps, [event], key.keyId);
  const place = { stream: STREAM.receiptLog, expected: last };
  if ((await appendUnlessOvertaken(deps, place, events, { repeats: last !== 'no_stream' })) === null)
    return null;
  return { ...head, note: event.data.note, place: null, signedAt: event.data.signedAt };
}

/** Keys that sign beside this one, for witnesses that do not know it. */
function replacedKeys(
  { checkpointSigner, witnesses = null }: Pick<CheckpointDeps, 'checkpointSigner' | 'witnesses'>,
  key: CheckpointKey,
  origin: string,
): readonly CheckpointKey[] {
  if (witnesses === null) return [];
  const isAccepted = witnesses.accept(toHex(noteKeyId({ ...noteKeyOf(key, origin), type: ED25519 })));
  return checkpointSigner.replacedBy(key.keyId, isAccepted);
}

function noteKeyOf({ x }: CheckpointKey, name: string): NoteKey {
  const publicKey = fromBase64url(x);
  if (publicKey === null) throw new Error('the public checkpoint key is not base64url');
  return { name, publicKey };
}

/** `now`: Unix ms. `also`: keys that sign too, after `key`. */
export async function signedCheckpoint(
  head: TreeHead,
  key: CheckpointKey,
  now: number,
  also: readonly CheckpointKey[] = [],
): Promise<EventOf<'CheckpointSigned'>> {
  const { origin, size, root } = head;
  const { keyId } = key;
  const text = checkpointText(head);
  let note = await signNote(text, noteKeyOf(key, origin), (message) => key.sign(message));
  for (const other of also) {
    const signed = await signNote(text, noteKeyOf(other, origin), (message) => other.sign(message));
    note += signed.slice(text.length + 1);
  }
  const signedAt = iso(now);
  const facts = { origin, size: String(size), root: toBase64(root), keyId, note, signedAt };
  return event('CheckpointSigned', facts);
}
