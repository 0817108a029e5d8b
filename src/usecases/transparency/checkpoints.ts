// The checkpoints of the transparency log. The first one, over no leaves, gives the log its name. Each later one is over
// the tree of the read models, and is signed only if the tree provably extends the last one. Consistency is checked
// against the local tree only; state reported by other processes is not trusted.
import { fromBase64url, toBase64 } from '#src/domain/encoding.ts';
import { decodeEvent } from '#src/domain/event-codec.ts';
import { type EventOf, event, STREAM } from '#src/domain/events.ts';
import type { ReceiptLog } from '#src/domain/receipt/payload.ts';
import { Fault } from '#src/domain/refusal.ts';
import {
  type CheckpointProblem,
  checkpointText,
  type NextCheckpoint,
  nextCheckpoint,
  originOf,
  parseCheckpoint,
  TRANSPARENCY,
  type TreeHead,
  verifyOwnCheckpoint,
} from '#src/domain/transparency/checkpoint.ts';
import { verifyConsistency } from '#src/domain/transparency/merkle.ts';
import { signNote } from '#src/domain/transparency/note.ts';
import { consistencyProof, type ReadTile, TileMissing, treeReader } from '#src/domain/transparency/tiles.ts';
import { EMPTY_TREE, rootOf, type Tree } from '#src/domain/transparency/tree.ts';
import { iso } from '#src/lib/iso.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import type { CheckpointSigner } from '#src/ports/signer.ts';
import {
  appendUntilKnown,
  envelope,
  type JournalDeps,
  unlessOvertaken,
} from '#src/usecases/event-streams.ts';
import type { KeyDirectory } from '#src/usecases/signing-keys/key-ring.ts';
import {
  type CheckpointFact,
  dueLook,
  evolveCheckpoints,
  NO_CHECKPOINTS,
  problemOf,
  type RowsNow,
  type StoredNote,
  statusOf,
} from './checkpoint-state.ts';
import { type RollbackCheckDeps, rollbackCheck } from './rollback-check.ts';

type CheckpointDeps = JournalDeps &
  RollbackCheckDeps & {
    readonly checkpointSigner: CheckpointSigner;
    readonly directory: Pick<KeyDirectory, 'refresh'>;
    /** Of an event log that begins after another was given up (`successorName`). */
    readonly successor?: string | null;
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
  role(): RowsNow['role'];
  /** Whether the rows have reached the event log's head; waits up to a second for it. */
  reachedHead(): Promise<boolean>;
  /** Notes of checkpoints in rows of another history, if any. */
  checkpointsElsewhere(): readonly string[];
  /** Runs `work` on one snapshot. `work` neither reads nor waits elsewhere. */
  withTree<T>(work: (projected: ProjectedTree) => Promise<T>): Promise<T>;
};

export type Checkpoints = Awaited<ReturnType<typeof openCheckpoints>>;

/** Well within TRANSPARENCY.checkpointMs. */
const LOOK_MS = 2000;
/** For the last checkpoint at shutdown. */
const LAST_MS = 2000;

/** Reads the log's state. Throws what a read of the log throws. */
export async function openCheckpoints(deps: CheckpointDeps) {
  const { log, clock, logger, directory, checkpointSigner, primitives } = deps;
  const rollback = rollbackCheck(deps);
  let state = NO_CHECKPOINTS;

  function record(fact: CheckpointFact): void {
    const before = problemOf(state);
    state = evolveCheckpoints(state, fact);
    if (problemOf(state) !== before) report(problemOf(state));
  }

  function report(problem: CheckpointProblem | null): void {
    if (problem === null) {
      logger.info('checkpoints are signed again: the last one is a part of the tree');
      return;
    }
    const place = problem === 'checkpoint_forgotten' ? state.newest?.place : null;
    const hint = place
      ? `. It is kept in ${place}: removing that and starting again continues a history that every published checkpoint contradicts`
      : '';
    logger.error(`no checkpoint is signed: ${PROBLEMS[problem]}${hint}`, {
      problem,
      stream: STREAM.receiptLog,
    });
  }

  /** The last event of the log's stream, null if there is none. `stored` null: it cannot be read. */
  async function refresh() {
    if (state.log === null) {
      const [first] = await log.readStream(STREAM.receiptLog, { max: 1 });
      if (first === undefined) return null;
      record({ is: 'log_found', origin: storedNote(first)?.origin ?? null });
      await recall([]);
    }
    // What is known now was published before the log is read, which therefore contains it.
    const { newest } = state;
    const [last] = await log.readStream(STREAM.receiptLog, { direction: 'backwards', max: 1 });
    if (last === undefined) return null;
    const stored = storedNote(last);
    if (stored !== null) {
      record({ is: 'log_read', last: stored, known: newest });
      await remember(stored);
    }
    return { revision: last.revision, position: last.position, stored };
  }

  /** Reads what is kept outside of the event log. */
  async function recall(elsewhere: readonly string[]): Promise<void> {
    const origin = state.log?.origin ?? null;
    if (origin === null) return;
    const notes = elsewhere.map((note) => rollback.own(note, origin, ELSEWHERE));
    // The file comes last: it is what an operator can remove.
    for (const checkpoint of await Promise.all([...notes, rollback.read(origin)]))
      if (checkpoint !== null) record({ is: 'checkpoint_found', checkpoint });
  }

  /** Compares what is kept outside of the event log, and in `elsewhere`, with the log; needs no rows. Throws if the log fails. */
  async function compareKept(elsewhere: readonly string[]): Promise<void> {
    await recall(elsewhere);
    await refresh();
  }

  /** What was published once stays the newest, whatever the log contains later. */
  async function remember(stored: StoredNote): Promise<void> {
    if (stored.origin !== state.log?.origin || stored.size <= (state.newest?.size ?? -1)) return;
    record({ is: 'checkpoint_found', checkpoint: stored });
    const checkpoint = await rollback.write(stored);
    if (checkpoint !== null) record({ is: 'checkpoint_found', checkpoint });
  }

  /** Begins the log if there is none and this process has a checkpoint key. `host`: of the base URL, with its port. */
  async function begin(host: string): Promise<void> {
    const here = originOf(host, deps.successor);
    try {
      const key = checkpointSigner.current();
      if (state.log === null && (await refresh()) === null && key !== null) {
        await sign({ origin: here, size: 0, root: rootOf(EMPTY_TREE) }, key, 'no_stream');
        // Also if the first one is another process's, or our own of an earlier call whose answer was lost.
        await refresh();
      }
    } catch (error) {
      if (!(error instanceof EventLogUnavailable)) throw error;
    }
    const named = state.log?.origin ?? here;
    if (named === here || named.startsWith(`${originOf(host)}/`)) return;
    const message = 'the transparency log keeps the name of its first checkpoint, not that of this base URL';
    logger.warn(message, { named, here });
  }

  /** null: `last` is no longer the last. The first checkpoint is appended once: no start waits for the event log. */
  async function sign(head: TreeHead, key: CheckpointKey, last: bigint | 'no_stream') {
    const event = await signedCheckpoint(head, key, clock.now());
    const events = envelope(deps, [event], key.keyId);
    const append =
      last === 'no_stream'
        ? log.append(STREAM.receiptLog, last, events)
        : appendUntilKnown(deps, STREAM.receiptLog, last, events);
    if ((await unlessOvertaken(append)) === null) return null;
    return { ...head, note: event.data.note, place: null, signedAt: event.data.signedAt };
  }

  /**
   * Compares the last checkpoint with the tree; with `maySign`, signs a new one if leaves wait. Throws if log or rows
   * fail. `overtaken`: another process signed meanwhile.
   */
  async function look(
    rows: Pick<TreeRows, 'checkpointsElsewhere' | 'withTree'>,
    maySign: boolean,
  ): Promise<NextCheckpoint['next'] | 'signed' | 'overtaken'> {
    // Before the log is read, which therefore contains all of them.
    await recall(rows.checkpointsElsewhere());
    const { newest } = state;
    const last = await refresh();
    if (last === null) return 'rest';
    const { stored, revision } = last;
    const head = await rows.withTree((projected) => headOf(projected, stored));
    const verdict = nextCheckpoint({
      last: stored && { ...stored, position: last.position },
      signed: stored !== null && (await isSigned(stored)),
      known: newest,
      rows: head,
    });
    const { position, size, root } = head;
    record({ is: 'compared', verdict, revision, position, at: clock.monotonic() });
    const key = maySign && verdict.next === 'sign' ? checkpointSigner.current() : null;
    if (key === null || stored === null) return verdict.next;
    const next = await sign({ origin: stored.origin, size, root }, key, revision);
    if (next === null) return 'overtaken';
    record({ is: 'signed', position });
    await remember(next);
    return 'signed';
  }

  /** By a checkpoint key of this relay; also by one that was compromised later, whose last checkpoint must be extended. */
  async function isSigned({ note, origin }: StoredNote): Promise<boolean> {
    // Another process may have signed with a key that was announced a moment ago.
    const keys = await directory.refresh();
    return origin === state.log?.origin && (await verifyOwnCheckpoint(note, keys, primitives)) !== null;
  }

  /**
   * Looks every 2 s, if there is a reason, until `stop`, which signs a last checkpoint if possible within 2 s. Calls
   * without an answer by then end with the store.
   */
  function keep(host: string, rows: TreeRows): { stop(): Promise<void> } {
    const stopping = new AbortController();
    const running = run();

    async function run(): Promise<void> {
      for (let ends = false, isFailing = false; !ends; ) {
        await clock.sleep(LOOK_MS, stopping.signal);
        ends = stopping.signal.aborted;
        try {
          if (state.log === null && !ends) await begin(host);
          if (ends && (state.log === null || !(await rows.reachedHead()))) return;
          const due = dueLook(state, { position: rows.position(), role: rows.role() }, clock.monotonic());
          if (due === 'sign' || (due === 'compare' && !ends)) await look(rows, due === 'sign');
          isFailing = false;
        } catch (cause) {
          // An unavailable event log or store is logged by its own part.
          if (cause instanceof EventLogUnavailable || cause instanceof Fault) continue;
          if (!isFailing) logger.warn('the transparency log cannot be read', { cause });
          isFailing = true;
        }
      }
    }

    return {
      async stop() {
        stopping.abort();
        const timer = new AbortController();
        await Promise.race([running, clock.sleep(LAST_MS, timer.signal)]);
        timer.abort();
      },
    };
  }

  await refresh();
  return {
    /** The newest checkpoint that this process has seen; null while there is no log. */
    latest: () => state.newest,
    /** What a receipt states about its log; null while there is no log. */
    promised: (): ReceiptLog | null =>
      state.log?.origin ? { origin: state.log.origin, mmdSeconds: TRANSPARENCY.mmdSeconds } : null,
    /** As of the last comparisons; null before the first, unless a checkpoint is forgotten. */
    standing: () => statusOf(state, clock.monotonic()),
    /** false: the event log lacks events that this relay has acknowledged, and no call is taken. */
    isWhole: () => problemOf(state) !== 'checkpoint_forgotten',
    begin,
    compareKept,
    look,
    keep,
  };
}

/** Rows of a history that the event log no longer has show what it once contained. */
const ELSEWHERE = 'another generation of the read models, which `relay rebuild --prune` drops';

const PROBLEMS: Readonly<Record<CheckpointProblem, string>> = {
  checkpoint_unreadable: 'the last checkpoint of the event log cannot be read',
  checkpoint_forgotten:
    'the event log no longer contains a checkpoint that it contained: it was restored or edited',
  checkpoint_not_signed:
    'the last checkpoint of the event log is not signed by a checkpoint key of this relay',
  history_cut: 'receipts or key events that the last checkpoint is over are missing',
  history_rewritten:
    'receipts or key events are not those that the last checkpoint is over, or the rows are damaged',
};

/** The tree's head, and whether its tiles prove, as to any client, that it extends the last checkpoint. */
async function headOf({ tree, position, readTile }: ProjectedTree, last: StoredNote | null) {
  const head = { size: tree.size, root: rootOf(tree), position };
  if (last === null || head.size < last.size) return { ...head, extendsLast: false };
  try {
    const proof = await consistencyProof(treeReader(readTile), last.size, head.size);
    const claim = { from: last.size, to: head.size, fromRoot: last.root, toRoot: head.root, proof };
    return { ...head, extendsLast: verifyConsistency(claim) };
  } catch (error) {
    if (!(error instanceof TileMissing)) throw error;
    return { ...head, extendsLast: false };
  }
}

type CheckpointKey = NonNullable<ReturnType<CheckpointSigner['current']>>;

/** `now`: Unix ms. */
export async function signedCheckpoint(
  head: TreeHead,
  key: CheckpointKey,
  now: number,
): Promise<EventOf<'CheckpointSigned'>> {
  const { origin, size, root } = head;
  const publicKey = fromBase64url(key.x);
  if (publicKey === null) throw new Error('the public checkpoint key is not base64url');
  const { keyId } = key;
  const note = await signNote(checkpointText(head), { name: origin, publicKey }, (text) => key.sign(text));
  const signedAt = iso(now);
  const facts = { origin, size: String(size), root: toBase64(root), keyId, note, signedAt };
  return event('CheckpointSigned', facts);
}

/** null if this version cannot read the event, or if its note differs from the event. */
function storedNote(recorded: Parameters<typeof decodeEvent>[0]): StoredNote | null {
  const event = decodeEvent(recorded);
  if (event?.type !== 'CheckpointSigned') return null;
  const { note, origin, size, root, signedAt } = event.data;
  const head = parseCheckpoint(note);
  if (head === null || head.origin !== origin) return null;
  const isSame = String(head.size) === size && toBase64(head.root) === root;
  return isSame ? { ...head, note, place: null, signedAt } : null;
}
