// The checkpoints of the transparency log. The first one, over no leaves, gives the log its name. Each later one is over
// the tree of the read models, and is signed only if the tree provably extends the last one. Consistency is checked
// against the local tree only; state reported by other processes is not trusted.
import { fromBase64url, toBase64 } from '#src/domain/encoding.ts';
import { decodeEvent } from '#src/domain/event-codec.ts';
import { type EventOf, STREAM } from '#src/domain/events.ts';
import type { CheckpointStatus } from '#src/domain/monitoring/trust.ts';
import type { ReceiptLog } from '#src/domain/receipt/payload.ts';
import {
  type CheckpointProblem,
  checkpointText,
  nextCheckpoint,
  originOf,
  parseCheckpoint,
  TRANSPARENCY,
  type TreeHead,
  verifyOwnCheckpoint,
} from '#src/domain/transparency/checkpoint.ts';
import { sameHash, verifyConsistency } from '#src/domain/transparency/merkle.ts';
import { signNote } from '#src/domain/transparency/note.ts';
import { consistencyProof, type ReadTile, TileMissing, treeReader } from '#src/domain/transparency/tiles.ts';
import { EMPTY_TREE, rootOf, type Tree } from '#src/domain/transparency/tree.ts';
import { EventLogUnavailable, WrongExpectedVersion } from '#src/ports/event-log.ts';
import type { CheckpointSigner } from '#src/ports/signer.ts';
import { appendUntilKnown, envelope, type JournalDeps } from '#src/usecases/event-streams.ts';
import type { KeyDirectory } from '#src/usecases/signing-keys/key-ring.ts';
import { type RollbackCheckDeps, rollbackCheck, type StoredNote } from './rollback-check.ts';

export type CheckpointDeps = JournalDeps &
  RollbackCheckDeps & {
    readonly checkpointSigner: CheckpointSigner;
    readonly directory: KeyDirectory;
  };

/** The tree of the read models: all leaves up to `position`, and none after it. */
export type ProjectedTree = {
  readonly tree: Tree;
  readonly position: string | null;
  readonly readTile: ReadTile;
};

/** Runs `work` on the tree; returns `busy` if another process holds the lock. `work` neither reads nor waits elsewhere. */
export type ShowTree = <T>(work: (projected: ProjectedTree) => Promise<T>) => Promise<T | 'busy'>;

/**
 * `overtaken`: another process signed meanwhile. `uncovered`: leaves wait, and this process does not sign. `behind`: the
 * rows lag behind the last checkpoint. `refused`: the last checkpoint is not a part of the tree.
 */
export type Looked = 'signed' | 'overtaken' | 'uncovered' | 'covered' | 'behind' | 'refused' | 'busy';

export type Checkpoints = {
  /** The name of the log, from its first checkpoint, whatever this process's host; null while there is no log. */
  origin(): string | null;
  /** The newest checkpoint that this process has seen; null while there is no log. */
  latest(): StoredNote | null;
  /** What a receipt states about its log; null while there is no log. */
  promised(): ReceiptLog | null;
  /** As of the last looks; null before the first. */
  standing(): CheckpointStatus | null;
  /**
   * Begins the log if there is none and this process has a checkpoint key; tries once per call. `host`: of the base URL,
   * with its port; that of an earlier call if omitted.
   */
  begin(host?: string): Promise<void>;
  /** A note found at `place` (a noun with its article), outside of the event log: counts if it is one of this log. */
  learn(note: string, place: string): Promise<void>;
  /** Reads the last checkpoint of the event log. Throws what a read of the log throws. */
  refresh(): Promise<LastCheckpoint | null>;
  /** Compares the last checkpoint with the tree; with `sign`, signs a new one if leaves wait. Throws if log or rows fail. */
  look(show: ShowTree, sign: boolean): Promise<Looked>;
};

/** The last event of the log's stream. `stored` null: it cannot be read. */
type LastCheckpoint = {
  readonly revision: bigint;
  readonly position: string;
  readonly stored: StoredNote | null;
};

/** Reads the log's state. Throws what a read of the log throws. */
export async function openCheckpoints(deps: CheckpointDeps): Promise<Checkpoints> {
  const { log, clock, logger, directory, checkpointSigner, primitives } = deps;
  const rollback = rollbackCheck(deps);
  const known = {
    /** The stream exists, readable or not. */
    exists: false,
    origin: null as string | null,
    latest: null as StoredNote | null,
    host: null as string | null,
    /** The log has another name than this process's host: logged. */
    renamed: false,
    /** The last note whose signature was verified. */
    verified: null as string | null,
    looked: false,
    problem: null as CheckpointProblem | null,
    /** Since when leaves wait for the checkpoint after this revision: leaves have no time of their own. */
    waiting: null as { readonly revision: bigint; readonly since: number } | null,
  };
  let beginning: Promise<void> | null = null;

  async function refresh(): Promise<LastCheckpoint | null> {
    const [last] = await log.readStream(STREAM.receiptLog, { direction: 'backwards', max: 1 });
    if (last === undefined) return null;
    if (!known.exists) {
      const [first = last] = await log.readStream(STREAM.receiptLog, { max: 1 });
      known.origin = storedNote(first)?.origin ?? null;
      known.exists = true;
      await recall();
    }
    const stored = storedNote(last);
    if (stored !== null) await remember(stored);
    const { revision, position } = last;
    return { revision, position, stored };
  }

  /** Takes what is kept outside of the log as the newest, unless the newest covers it. */
  async function recall(read = rollback.read): Promise<void> {
    const kept = known.origin === null ? null : await read(known.origin);
    if (kept !== null && !covers(known.latest, kept)) known.latest = kept;
  }

  /** What was published once stays the newest, whatever the log contains later. */
  async function remember(stored: StoredNote): Promise<void> {
    if (stored.origin !== known.origin) return;
    if (known.latest !== null && stored.size <= known.latest.size) return;
    known.latest = stored;
    await rollback.write(stored);
  }

  async function beginOnce(host: string): Promise<void> {
    const origin = originOf(host);
    if (!known.exists) await createLog(origin).catch(unlessUnavailable);
    if (known.origin === null || known.origin === origin || known.renamed) return;
    known.renamed = true;
    const names = { named: known.origin, here: origin };
    logger.warn(
      'the transparency log keeps the name of its first checkpoint, not that of this base URL',
      names,
    );
  }

  async function createLog(origin: string): Promise<void> {
    const key = checkpointSigner.current();
    if (key === null) return;
    const head = { origin, size: 0, root: rootOf(EMPTY_TREE) };
    const event = await signedCheckpoint(head, key, clock.now());
    try {
      await log.append(STREAM.receiptLog, 'no_stream', envelope(deps, [event], key.keyId));
    } catch (error) {
      // Another process's, or our own of an earlier call whose answer was lost.
      if (!(error instanceof WrongExpectedVersion)) throw error;
    }
    await refresh();
  }

  async function look(show: ShowTree, sign: boolean): Promise<Looked> {
    // Before the log is read, which therefore contains both of them.
    await recall();
    const newest = known.latest;
    const last = await refresh();
    if (last === null) return 'covered';
    const { stored } = last;
    const rows = await show((projected) => headOf(projected, stored));
    if (rows === 'busy') return 'busy';
    const verdict = nextCheckpoint({
      last: stored && { ...stored, position: last.position },
      signed: stored !== null && (await isSigned(stored.note)),
      known: newest,
      rows,
    });
    known.looked = true;
    report(verdict.next === 'refuse' ? verdict.why : null);
    waits(last.revision, verdict.next === 'sign' || verdict.next === 'refuse');
    if (verdict.next === 'refuse') return 'refused';
    if (verdict.next !== 'sign') return verdict.next === 'wait' ? 'behind' : 'covered';
    return sign ? signNext(rows, last.revision) : 'uncovered';
  }

  async function signNext(rows: Pick<TreeHead, 'size' | 'root'>, revision: bigint): Promise<Looked> {
    const key = checkpointSigner.current();
    const { origin } = known;
    if (key === null || origin === null) return 'uncovered';
    const event = await signedCheckpoint({ origin, size: rows.size, root: rows.root }, key, clock.now());
    try {
      await appendUntilKnown(deps, STREAM.receiptLog, revision, envelope(deps, [event], key.keyId));
    } catch (error) {
      if (error instanceof WrongExpectedVersion) return 'overtaken';
      throw error;
    }
    known.verified = event.data.note;
    waits(revision + 1n, false);
    await remember({ origin, size: rows.size, root: rows.root, note: event.data.note });
    return 'signed';
  }

  /** By a checkpoint key of this relay; also by one that was compromised later, whose last checkpoint must be extended. */
  async function isSigned(note: string): Promise<boolean> {
    if (note === known.verified) return true;
    // The second read: another process may have signed with a key that was announced a moment ago.
    for (const keys of [directory.list, directory.refresh]) {
      const signed = await verifyOwnCheckpoint(note, await keys(), primitives);
      if (signed === null || signed.origin !== known.origin) continue;
      known.verified = note;
      return true;
    }
    return false;
  }

  function waits(revision: bigint, uncovered: boolean): void {
    if (!uncovered) known.waiting = null;
    else if (known.waiting?.revision !== revision) known.waiting = { revision, since: clock.monotonic() };
  }

  /** Logs each problem once, and its end. */
  function report(problem: CheckpointProblem | null): void {
    if (problem === known.problem) return;
    known.problem = problem;
    if (problem === null) {
      logger.info('checkpoints are signed again: the last one is a part of the tree');
      return;
    }
    const place = problem === 'checkpoint_forgotten' ? rollback.placeOf(known.latest?.note ?? '') : null;
    const hint =
      place === null
        ? ''
        : `. It is kept in ${place}: removing that and starting again continues a history that every published checkpoint contradicts`;
    logger.error(`no checkpoint is signed: ${PROBLEMS[problem]}${hint}`, {
      problem,
      stream: STREAM.receiptLog,
    });
  }

  await refresh();
  return {
    origin: () => known.origin,
    latest: () => known.latest,
    promised: () =>
      known.origin === null ? null : { origin: known.origin, mmdSeconds: TRANSPARENCY.mmdSeconds },
    standing: () => {
      if (!known.looked) return null;
      const ageMs = known.waiting === null ? 0 : Math.round(clock.monotonic() - known.waiting.since);
      return { ageMs, consistent: known.problem === null };
    },
    async begin(host = known.host ?? undefined) {
      if (host === undefined) return;
      known.host = host;
      beginning ??= beginOnce(host).finally(() => {
        beginning = null;
      });
      await beginning;
    },
    learn: (note, place) => recall((origin) => rollback.own(note, origin, place)),
    refresh,
    look,
  };
}

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

function unlessUnavailable(error: unknown): void {
  if (!(error instanceof EventLogUnavailable)) throw error;
}

/** The same tree, or a larger one, which is signed only if it extends this one. */
const covers = (latest: StoredNote | null, { size, root }: StoredNote): boolean =>
  latest !== null && (latest.size > size || (latest.size === size && sameHash(latest.root, root)));

/** The tree's head, and whether its tiles prove, as to any client, that it extends the last checkpoint. */
async function headOf(
  { tree, position, readTile }: ProjectedTree,
  last: Pick<StoredNote, 'size' | 'root'> | null,
) {
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

type CheckpointEvent = {
  readonly type: 'CheckpointSigned';
  readonly data: EventOf<'CheckpointSigned'>['data'];
};

/** `now`: Unix ms. */
export async function signedCheckpoint(
  head: TreeHead,
  key: NonNullable<ReturnType<CheckpointSigner['current']>>,
  now: number,
): Promise<CheckpointEvent> {
  const { origin, size, root } = head;
  const publicKey = fromBase64url(key.x);
  if (publicKey === null) throw new Error('the public checkpoint key is not base64url');
  const note = await signNote(checkpointText(head), { name: origin, publicKey }, (message) =>
    key.sign(message),
  );
  const { keyId } = key;
  const signedAt = new Date(now).toISOString();
  const data = { v: 1 as const, origin, size: String(size), root: toBase64(root), keyId, note, signedAt };
  return { type: 'CheckpointSigned', data };
}

/** null if this version cannot read the event, or if its note differs from the event. */
function storedNote(recorded: Parameters<typeof decodeEvent>[0]): StoredNote | null {
  const event = decodeEvent(recorded);
  if (event?.type !== 'CheckpointSigned') return null;
  const { note, origin, size, root } = event.data;
  const head = parseCheckpoint(note);
  if (head === null || head.origin !== origin) return null;
  return String(head.size) === size && toBase64(head.root) === root ? { ...head, note } : null;
}
