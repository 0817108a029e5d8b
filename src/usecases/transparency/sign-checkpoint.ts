// One look at the tree: is what was signed before a part of it, and is there more to sign? Only this process's own view
// of the log decides, never another's word; the append expects the very checkpoint that was looked at.
import { STREAM } from '#src/domain/events.ts';
import type { CheckpointStanding } from '#src/domain/monitoring/trust.ts';
import type { Primitives } from '#src/domain/receipt/verify.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { verifyOwnCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { type Hash, verifyConsistency } from '#src/domain/transparency/merkle.ts';
import { type CheckpointProblem, nextCheckpoint } from '#src/domain/transparency/next-checkpoint.ts';
import { consistencyProof } from '#src/domain/transparency/proofs.ts';
import { type ReadTile, TileMissing, treeReader } from '#src/domain/transparency/tiles.ts';
import { rootOf, type Tree } from '#src/domain/transparency/tree.ts';
import type { CheckpointSigner } from '#src/ports/signer.ts';
import type { JournalDeps } from '#src/usecases/event-streams.ts';
import type { KeyDirectory } from '#src/usecases/signing-keys/key-directory.ts';
import type { LastCheckpoint, ReceiptLogKeeper } from './receipt-log.ts';
import { type StoredNote, signedCheckpoint } from './signed-checkpoint.ts';

export type CheckpointDeps = Pick<JournalDeps, 'clock' | 'logger'> & {
  readonly receiptLog: Pick<ReceiptLogKeeper, 'origin' | 'latest' | 'keptIn' | 'refresh' | 'append'>;
  readonly checkpointSigner: CheckpointSigner;
  readonly directory: KeyDirectory;
  readonly primitives: Primitives;
};

/** The tree as the rows tell it: none of their leaves comes after `position` in the log, and none before is missing. */
export type StandingTree = {
  readonly tree: Tree;
  readonly position: string | null;
  readonly readTile: ReadTile;
};

/** Shows the tree; `busy` where nobody may look now. What is done with it asks nothing else and waits for nothing. */
export type ShowTree = <T>(work: (standing: StandingTree) => Promise<T>) => Promise<T | 'busy'>;

/**
 * `overtaken`: another one was signed meanwhile. `uncovered`: there is more to sign, yet not here. `busy`: nobody could
 * look. `refused`: what was signed before is no part of the tree.
 */
export type Looked = 'signed' | 'overtaken' | 'uncovered' | 'covered' | 'behind' | 'refused' | 'busy';

export type Checkpoints = {
  /** `sign`: where there is more, and this process has a key. Throws where log or rows are away. */
  look(show: ShowTree, sign: boolean): Promise<Looked>;
  /** As of the last looks; null: there was none yet. */
  standing(): CheckpointStanding | null;
};

export function checkpoints(deps: CheckpointDeps): Checkpoints {
  const { receiptLog, clock } = deps;
  const watch = uncoveredWatch(clock);
  const told = problemNotice(deps);
  const isSigned = signatureCheck(deps);
  const state = { problem: null as CheckpointProblem | null, looked: false };

  async function look(show: ShowTree, sign: boolean): Promise<Looked> {
    // Known before the log is read, so that it has it.
    const known = receiptLog.latest();
    const last = await receiptLog.refresh();
    if (last === null) return 'covered';
    const { stored } = last;
    const tree = await show((standing) => headOf(standing, stored));
    if (tree === 'busy') return 'busy';
    const verdict = nextCheckpoint({
      last: stored && { ...stored, position: last.position },
      signed: stored !== null && (await isSigned(stored)),
      known,
      rows: tree,
    });
    state.looked = true;
    state.problem = verdict.next === 'refuse' ? verdict.why : null;
    told(state.problem);
    watch.saw(last.revision, verdict.next === 'sign' || verdict.next === 'refuse');
    if (verdict.next === 'refuse') return 'refused';
    if (verdict.next !== 'sign') return verdict.next === 'wait' ? 'behind' : 'covered';
    return sign ? signNext(tree, last) : 'uncovered';
  }

  async function signNext(tree: { size: number; root: Hash }, last: LastCheckpoint): Promise<Looked> {
    const key = deps.checkpointSigner.current();
    const origin = receiptLog.origin();
    if (key === null || origin === null) return 'uncovered';
    const head = { origin, size: tree.size, root: tree.root };
    const event = await signedCheckpoint(head, key, clock.now());
    if (!(await receiptLog.append(event, last.revision))) return 'overtaken';
    isSigned.by(event.data.note);
    watch.saw(last.revision + 1n, false);
    return 'signed';
  }

  return {
    look,
    standing: () =>
      state.looked ? { ageMs: watch.uncoveredForMs(), consistent: state.problem === null } : null,
  };
}

/** The tree's head, and whether it can be proven by the tiles, as anybody else would, to go on from the last one. */
async function headOf(
  { tree, position, readTile }: StandingTree,
  last: Pick<StoredNote, 'size' | 'root'> | null,
) {
  const root = rootOf(tree);
  const { size } = tree;
  if (last === null || size < last.size) return { size, position, root, extendsLast: false };
  const claim = { from: last.size, to: size, fromRoot: last.root, toRoot: root };
  try {
    const proof = await consistencyProof(treeReader(readTile), last.size, size);
    return { size, position, root, extendsLast: verifyConsistency({ ...claim, proof }) };
  } catch (error) {
    if (!(error instanceof TileMissing)) throw error;
    return { size, position, root, extendsLast: false };
  }
}

/** How long leaves wait for a checkpoint: watched here, since no leaf has a time of its own. */
function uncoveredWatch(clock: CheckpointDeps['clock']) {
  const seen = { revision: null as bigint | null, since: null as number | null };
  return {
    /** A checkpoint that was signed meanwhile covers what waited before. */
    saw(revision: bigint, uncovered: boolean): void {
      const goesOn = uncovered && seen.since !== null && seen.revision === revision;
      if (!goesOn) seen.since = uncovered ? clock.monotonic() : null;
      seen.revision = revision;
    },
    uncoveredForMs: () => (seen.since === null ? 0 : Math.round(clock.monotonic() - seen.since)),
  };
}

const WORDS: Readonly<Record<CheckpointProblem, string>> = {
  checkpoint_unreadable: 'the last checkpoint of the event log cannot be read',
  checkpoint_forgotten: 'the event log no longer has a checkpoint that it had: it was restored or edited',
  checkpoint_not_signed:
    'the last checkpoint of the event log is not signed by a checkpoint key of this relay',
  history_cut: 'receipts or key events are gone that the last checkpoint is over',
  history_rewritten:
    'receipts or key events are not those that the last checkpoint is over, or the rows are damaged',
};

/** Once each, not once a second. */
function problemNotice({
  logger,
  receiptLog,
}: Pick<CheckpointDeps, 'logger' | 'receiptLog'>): (problem: CheckpointProblem | null) => void {
  let told: CheckpointProblem | null = null;
  return (problem) => {
    if (problem === told) return;
    told = problem;
    if (problem === null) logger.info('checkpoints are signed again: the last one is a part of the tree');
    else {
      const where = problem === 'checkpoint_forgotten' ? whereKept(receiptLog.keptIn()) : '';
      const fields = { problem, stream: STREAM.receiptLog };
      logger.error(`no checkpoint is signed: ${WORDS[problem]}${where}`, fields);
    }
  };
}

const whereKept = (place: string | null): string =>
  place === null
    ? ''
    : `. It is kept in ${place}: who removes that deliberately, and starts again, goes on with a history that every kept checkpoint will contradict`;

/** Whether a note is signed by a checkpoint key of this relay, as the log tells of them. */
function signatureCheck({ directory, receiptLog, primitives }: CheckpointDeps) {
  let known: string | null = null;
  async function isSigned({ note }: StoredNote): Promise<boolean> {
    if (note === known) return true;
    // Another process may have signed with a key that was announced a moment ago.
    if (!(await isBy(note, await directory.list())) && !(await isBy(note, await directory.refresh())))
      return false;
    known = note;
    return true;
  }
  async function isBy(note: string, keys: readonly KeyRecord[]): Promise<boolean> {
    // Of a key that was compromised later, too: its last checkpoint is what the next key's has to go on from.
    return (await verifyOwnCheckpoint(note, keys, primitives))?.origin === receiptLog.origin();
  }
  return Object.assign(isSigned, {
    /** Our own needs no look. */
    by(note: string): void {
      known = note;
    },
  });
}
