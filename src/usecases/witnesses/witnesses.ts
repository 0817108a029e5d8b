// Asks the configured witnesses to cosign the newest checkpoint, in a loop of its own: no execution, receipt or checkpoint waits
// for it. What a quorum has cosigned is recorded once, whatever number of processes ask.
import { toHex } from '#src/domain/encoding.ts';
import type { WitnessesStatus } from '#src/domain/monitoring/witnesses.ts';
import type { Primitives } from '#src/domain/signing-keys/keys.ts';
import { sameHash } from '#src/domain/transparency/merkle.ts';
import { parseNote, withSignatures } from '#src/domain/transparency/note.ts';
import { consistencyProof, type ReadTile, TileMissing, treeReader } from '#src/domain/transparency/tiles.ts';
import type { QuorumPolicy } from '#src/domain/transparency/witness-policy.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import type { JournalDeps } from '#src/usecases/process/stream.ts';
import { repeated } from '#src/usecases/process/worker.ts';
import type { StoredNote } from '#src/usecases/transparency/checkpoint-state.ts';
import type { Checkpoints, TreeRows } from '#src/usecases/transparency/checkpoints.ts';
import type { AskedWitness, Asking } from './ask-witness.ts';
import { CosignedRecord } from './cosigned-record.ts';
import { Questions } from './questions.ts';
import { WitnessRound } from './round.ts';
import type { WitnessRefusal } from './witness-state.ts';
import { WitnessStates } from './witness-states.ts';

export type WitnessesDeps = JournalDeps & {
  /** In the policy's order. */
  readonly witnesses: readonly AskedWitness[];
  readonly quorum: QuorumPolicy['quorum'];
  /** ms between two questions to a witness. */
  readonly intervalMs: number;
  readonly primitives: Primitives;
  /** Aborts when the service begins to end. */
  readonly stopping: AbortSignalLike;
};

/** The log that is witnessed. Only `readTile` throws, and `lacks` and `witnessPublished` what a read of the event log throws. */
export type WitnessedLog = {
  readonly checkpoints: Pick<
    Checkpoints,
    'latest' | 'lacks' | 'signedHere' | 'witnessPublished' | 'witnessClaims'
  >;
  readonly rows: Pick<TreeRows, 'role'> & { readonly readTile: ReadTile };
};

/** An idle log's checkpoint is cosigned again after this time, so that its cosignatures stay fresh. */
const REFRESH_MS = 6 * 3_600_000;
/** If a checkpoint waits for a quorum this long, the projecting process does not ask, and any other does. */
const TAKE_OVER_MS = 60_000;
/** Until the first question, which shows at once if the event log lacks what a witness has cosigned. */
const FIRST_LOOK_MS = 500;

export class Witnesses {
  readonly #deps: WitnessesDeps;
  readonly #policy: QuorumPolicy;
  readonly #record: CosignedRecord;
  readonly #states: WitnessStates;
  readonly #questions: Questions;
  #round: WitnessRound | null = null;
  /** Monotonic, since when a checkpoint waits for a quorum; null: none does. */
  #waitingSince: number | null = null;
  #hasAsked = false;

  constructor(deps: WitnessesDeps) {
    this.#deps = deps;
    this.#policy = { witnesses: deps.witnesses.map(({ known }) => known), quorum: deps.quorum };
    this.#record = new CosignedRecord(deps);
    this.#states = new WitnessStates(deps.logger);
    this.#questions = new Questions(deps, this.#states);
  }

  /** Reads what is recorded. Throws what a read of the log throws. */
  async open(): Promise<void> {
    await this.#record.read();
    this.#states.recall(this.#policy.witnesses, this.#record);
  }

  /** Resolves when `stopping` aborts and the round in hand has ended. Never rejects. */
  async run(witnessed: WitnessedLog): Promise<void> {
    await repeated(this.#deps, {
      pauseMs: () => (this.#hasAsked ? this.#deps.intervalMs : FIRST_LOOK_MS),
      run: () => this.look(witnessed),
      failed: { message: 'the witnesses could not be asked' },
    }).run();
    await this.#questions.ended();
  }

  /**
   * Asks the witnesses that are due, and records what a quorum has cosigned: with the others, if they answer soon. A later answer
   * is known to the next look. Throws what reads of the log and of the rows throw.
   */
  async look({ checkpoints, rows }: WitnessedLog): Promise<void> {
    await this.#record.read();
    const newest = checkpoints.latest();
    if (newest === null) return;
    this.#reportClaims(checkpoints);
    const age = this.#record.age(newest);
    const isFresh = age !== null && age < REFRESH_MS;
    const now = this.#deps.clock.monotonic();
    this.#waitingSince = isFresh ? null : (this.#waitingSince ?? now);
    const isOverdue = this.#waitingSince !== null && now - this.#waitingSince >= TAKE_OVER_MS;
    // Each process asks once: a restored log may lack what the witnesses have cosigned.
    const isItsTurn = isOverdue || !this.#hasAsked;
    if (rows.role() !== 'projects' && !(rows.role() === 'follows' && isItsTurn)) return;
    if (this.#round === null || !isSame(this.#round.checkpoint, newest))
      this.#round = new WitnessRound(newest, this.#policy);
    const round = this.#round;
    const due = this.#deps.witnesses.filter(({ known: { name } }) => {
      const { askAt, refusal } = this.#states.of(name);
      // What is recorded already is asked for once, and of a witness that has stated a larger size.
      const isDue = !isFresh || !this.#hasAsked || (refusal !== null && CLAIMING.has(refusal));
      return isDue && askAt <= now && !this.#questions.isOpen(name) && !round.cosignatures.has(name);
    });
    const asking = due.length === 0 ? null : await askingFor(newest, rows.readTile, this.#deps.stopping);
    if (asking !== null) {
      this.#hasAsked = true;
      await this.#questions.ask(due, asking, round, checkpoints);
      this.#reportClaims(checkpoints);
    }
    await this.#conclude(round, isFresh);
  }

  /** The newest checkpoint that a quorum has cosigned, a signed note with the cosignatures; null: there is none. */
  latest(): string | null {
    return this.#record.note();
  }

  /** Whether every witness has accepted this checkpoint key (note key id, hex) since this process began. */
  accept(key: string): boolean {
    return this.#deps.witnesses.every(({ known }) => this.#states.of(known.name).accepts === key);
  }

  status(): WitnessesStatus {
    const { quorum, witnesses, clock } = this.#deps;
    const waited = this.#waitingSince === null ? 0 : clock.monotonic() - this.#waitingSince;
    return {
      configured: witnesses.length,
      quorum: quorum?.name ?? 'none',
      lastCosignedAt: this.#record.last?.cosignedAt ?? null,
      lagSeconds: Math.floor(waited / 1000),
      witnesses: witnesses.map(({ known: { name } }) => this.#states.status(name)),
    };
  }

  #reportClaims({ latest, witnessClaims }: WitnessedLog['checkpoints']): void {
    const size = latest()?.size ?? 0;
    const larger = this.#states.quorumClaims(this.#policy, size);
    witnessClaims({ larger, forked: this.#states.forks(this.#policy) });
  }

  /** Records a checkpoint that a quorum has cosigned. `isFresh`: it is recorded already. */
  async #conclude(round: WitnessRound, isFresh: boolean): Promise<void> {
    if (!round.hasQuorum()) return;
    this.#round = null;
    if (isFresh) return;
    // Otherwise another process has recorded it, or a later one: the next look reads which.
    if (await this.#record.append(round.checkpoint, round.cosignatures, this.#policy))
      this.#waitingSince = null;
  }
}

/** Refusals of a witness that has stated a larger size, or shown another history. */
const CLAIMING: ReadonlySet<WitnessRefusal> = new Set([
  'ahead',
  'forked',
  'states_larger_size_without_proof',
]);

const isSame = (a: StoredNote, b: StoredNote): boolean => a.size === b.size && sameHash(a.root, b.root);

/** null: the rows do not have the signed tree now. */
async function askingFor(
  { size, root, note }: StoredNote,
  readTile: ReadTile,
  ending: AbortSignalLike,
): Promise<Asking | null> {
  const reader = treeReader(readTile);
  const parsed = parseNote(note);
  const [newest, ...replaced] = parsed?.signatures ?? [];
  if (parsed === null || newest === undefined) return null;
  try {
    if (!sameHash(await reader.root(0, size), root)) return null;
  } catch (error) {
    if (!(error instanceof TileMissing)) throw error;
    return null;
  }
  const { text } = parsed;
  const alone = replaced.length === 0 ? null : withSignatures({ text, signatures: [] }, [newest]);
  const proof = (from: number) => consistencyProof(reader, from, size);
  const rootOf = (of: number) => reader.root(0, of);
  return { size, text, note, alone, newestKey: toHex(newest.keyId), proof, root: rootOf, ending };
}
