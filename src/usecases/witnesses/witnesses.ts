// Asks the configured witnesses to cosign the newest checkpoint, in a loop of its own: no execution, receipt or checkpoint waits
// for it. What a quorum has cosigned is recorded once, whatever number of processes ask.
import { fromBase64, toBase64, toHex } from '#src/domain/encoding.ts';
import { decodeEvent } from '#src/domain/event-codec.ts';
import { type EventOf, event, STREAM } from '#src/domain/events.ts';
import type { WitnessesStatus } from '#src/domain/monitoring/witnesses.ts';
import type { Primitives } from '#src/domain/signing-keys/keys.ts';
import { keyIdText } from '#src/domain/transparency/cosignature.ts';
import { sameHash } from '#src/domain/transparency/merkle.ts';
import { parseNote, withSignatures } from '#src/domain/transparency/note.ts';
import { consistencyProof, type ReadTile, TileMissing, treeReader } from '#src/domain/transparency/tiles.ts';
import {
  judgeQuorum,
  type PolicyCosignature,
  type WitnessPolicy,
} from '#src/domain/transparency/witness-policy.ts';
import { iso, isoNow } from '#src/lib/iso.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import { isOutage } from '#src/ports/outage.ts';
import {
  appendUntilKnown,
  envelope,
  type JournalDeps,
  unlessOvertaken,
} from '#src/usecases/event-streams.ts';
import type { StoredNote } from '#src/usecases/transparency/checkpoint-state.ts';
import type { Checkpoints, TreeRows } from '#src/usecases/transparency/checkpoints.ts';
import { type Asked, type AskedWitness, type Asking, askWitness } from './ask-witness.ts';
import { UNKNOWN_WITNESS, type WitnessState } from './witness-state.ts';

export type WitnessesDeps = JournalDeps & {
  readonly policy: WitnessPolicy;
  /** Of the policy, in its order. */
  readonly witnesses: readonly AskedWitness[];
  /** ms between two questions to a witness. */
  readonly intervalMs: number;
  readonly primitives: Primitives;
  /** Aborts when the service begins to end. */
  readonly stopping: AbortSignalLike;
};

/** The log that is witnessed. Only `readTile` throws, and `witnessAnswered` what a read of the event log throws. */
export type WitnessedLog = {
  readonly checkpoints: Pick<Checkpoints, 'latest' | 'witnessAnswered'>;
  readonly rows: Pick<TreeRows, 'role'> & { readonly readTile: ReadTile };
};

/** An idle log's checkpoint is cosigned again after this time, so that its cosignatures stay fresh. */
const REFRESH_MS = 6 * 3_600_000;
/** If a checkpoint waits for a quorum this long, the projecting process does not ask, and any other does. */
const TAKE_OVER_MS = 60_000;
/** Until the first question, which shows at once if the event log lacks what a witness has cosigned. */
const FIRST_LOOK_MS = 500;

/** The last event of `log-witnesses`. */
type Recorded = {
  readonly expected: bigint | 'no_stream';
  /** null: there is none, or it cannot be read. */
  readonly last: EventOf<'CheckpointCosigned'>['data'] | null;
};

/** The checkpoint that is being cosigned, and what it has so far, by the names of the policy. */
type Round = {
  readonly checkpoint: StoredNote;
  readonly cosignatures: ReadonlyMap<string, PolicyCosignature>;
};

export class Witnesses {
  readonly #deps: WitnessesDeps;
  readonly #states: Map<string, WitnessState>;
  #recorded: Recorded = { expected: 'no_stream', last: null };
  #round: Round | null = null;
  /** Monotonic, since when a checkpoint waits for a quorum; null: none does. */
  #waitingSince: number | null = null;
  #hasAsked = false;

  constructor(deps: WitnessesDeps) {
    this.#deps = deps;
    this.#states = new Map(deps.witnesses.map(({ known }) => [known.name, UNKNOWN_WITNESS]));
  }

  /** Reads what is recorded. Throws what a read of the log throws. */
  async open(): Promise<void> {
    await this.#read();
    const { last } = this.#recorded;
    for (const { known } of this.#deps.witnesses) {
      const keyId = keyIdText(known.key);
      const own = last?.cosignatures.find((line) => line.name === known.key.name && line.keyId === keyId);
      if (own === undefined || last === null) continue;
      const state = { ...UNKNOWN_WITNESS, size: Number(last.size), cosignedAt: own.time };
      this.#states.set(known.name, state);
    }
  }

  /** Resolves when `stopping` aborts and the round in hand has ended. Never rejects. */
  async run(witnessed: WitnessedLog): Promise<void> {
    const { clock, logger, stopping, intervalMs } = this.#deps;
    while (!stopping.aborted) {
      try {
        await this.look(witnessed);
      } catch (cause) {
        if (!isOutage(cause) && !stopping.aborted) logger.bug('the witnesses could not be asked', { cause });
      }
      const isWaiting = !this.#hasAsked && witnessed.rows.role() !== 'follows';
      await clock.sleep(isWaiting ? FIRST_LOOK_MS : intervalMs, stopping);
    }
  }

  /** Asks the witnesses that are due, and records what a quorum has cosigned. Throws what reads of the log and of the rows throw. */
  async look({ checkpoints, rows }: WitnessedLog): Promise<void> {
    await this.#read();
    const { clock } = this.#deps;
    const newest = checkpoints.latest();
    if (newest === null) return;
    const isCovered = this.#covers(newest);
    const now = clock.monotonic();
    const isFresh = isCovered && this.#age() < REFRESH_MS;
    this.#waitingSince = isFresh ? null : (this.#waitingSince ?? now);
    const isOverdue = this.#waitingSince !== null && now - this.#waitingSince >= TAKE_OVER_MS;
    if (rows.role() !== 'projects' && !(rows.role() === 'follows' && isOverdue)) return;
    if (this.#round === null || !isSame(this.#round.checkpoint, newest))
      this.#round = { checkpoint: newest, cosignatures: new Map() };
    const due = this.#deps.witnesses.filter(({ known: { name } }) => {
      const { askAt, refusal } = this.#stateOf(name);
      // What is recorded already is asked for once, and of a witness that was ahead.
      const isDue = !isFresh || !this.#hasAsked || refusal === 'ahead';
      return isDue && askAt <= now && !this.#round?.cosignatures.has(name);
    });
    const asking = due.length === 0 ? null : await this.#asking(newest, rows.readTile);
    if (asking === null) return;
    await this.#ask(due, asking, checkpoints);
    await this.#conclude(newest, isFresh);
  }

  /** The newest checkpoint that a quorum has cosigned, a signed note with the cosignatures; null: there is none. */
  latest(): string | null {
    const { last } = this.#recorded;
    return last === null ? null : last.note + last.cosignatures.map(({ line }) => `${line}\n`).join('');
  }

  /** Whether every witness has accepted this checkpoint key (note key id, hex) since this process began. */
  accept(key: string): boolean {
    return [...this.#states.values()].every(({ accepts }) => accepts === key);
  }

  status(): WitnessesStatus {
    const { policy, witnesses, clock } = this.#deps;
    const { last } = this.#recorded;
    const waited = this.#waitingSince === null ? 0 : clock.monotonic() - this.#waitingSince;
    return {
      configured: witnesses.length,
      quorum: policy.quorum?.name ?? 'none',
      lastCosignedAt: last?.cosignedAt ?? null,
      lagSeconds: Math.floor(waited / 1000),
      witnesses: witnesses.map(({ known: { name } }) => {
        const { refusal, cosignedAt } = this.#stateOf(name);
        return { name, refusal, cosignedAt: cosignedAt === null ? null : iso(cosignedAt * 1000) };
      }),
    };
  }

  #stateOf(name: string): WitnessState {
    return this.#states.get(name) ?? UNKNOWN_WITNESS;
  }

  async #read(): Promise<void> {
    const [last] = await this.#deps.log.readStream(STREAM.logWitnesses, { direction: 'backwards', max: 1 });
    if (last === undefined) return;
    const found = decodeEvent(last);
    const data = found?.type === 'CheckpointCosigned' ? found.data : null;
    this.#recorded = { expected: last.revision, last: data };
  }

  /** A quorum has cosigned this checkpoint, or a later one of another process. */
  #covers({ size, root }: StoredNote): boolean {
    const { last } = this.#recorded;
    if (last === null || Number(last.size) < size) return false;
    return Number(last.size) > size || sameHash(fromBase64(last.root) ?? new Uint8Array(), root);
  }

  /** ms since the last record; a clock that was ahead makes nothing old. */
  #age(): number {
    return this.#deps.clock.now() - Date.parse(this.#recorded.last?.cosignedAt ?? '');
  }

  /** All at once. */
  async #ask(due: readonly AskedWitness[], asking: Asking, checkpoints: WitnessedLog['checkpoints']) {
    this.#hasAsked = true;
    const answers = await Promise.all(
      due.map(async (witness) => {
        const { name } = witness.known;
        return [name, await askWitness(this.#deps, witness, this.#stateOf(name), asking)] as const;
      }),
    );
    for (const [name, answer] of answers) await this.#take(name, answer, checkpoints);
  }

  /** null: the rows do not have the signed tree now. */
  async #asking({ size, root, note }: StoredNote, readTile: ReadTile): Promise<Asking | null> {
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
    const newestKey = toHex(newest.keyId);
    return { size, text, note, alone, newestKey, proof, ending: this.#deps.stopping };
  }

  async #take(name: string, { state, cosignature }: Asked, checkpoints: WitnessedLog['checkpoints']) {
    const { logger } = this.#deps;
    const before = this.#stateOf(name);
    const claimed = state.refusal === 'ahead' ? state.size : null;
    const isAhead = await checkpoints.witnessAnswered(name, claimed);
    // Another process has signed meanwhile: that is no refusal.
    const after: WitnessState =
      claimed === null || isAhead ? state : { ...state, refusal: null, failures: 0 };
    this.#states.set(name, after);
    if (cosignature !== null && this.#round !== null)
      this.#round = {
        ...this.#round,
        cosignatures: new Map([...this.#round.cosignatures, [name, cosignature]]),
      };
    const { refusal } = after;
    if (refusal === before.refusal) return;
    if (refusal === null) logger.info('a witness cosigns again', { witness: name });
    else logger.warn('a witness does not cosign the newest checkpoint', { witness: name, reason: refusal });
  }

  /** Records a checkpoint that a quorum has cosigned. `isFresh`: it is recorded already. */
  async #conclude({ origin, size, root, note }: StoredNote, isFresh: boolean): Promise<void> {
    const { policy } = this.#deps;
    const cosignatures = this.#round?.cosignatures ?? new Map();
    if (cosignatures.size === 0 || !judgeQuorum(policy, new Set(cosignatures.keys())).met) return;
    this.#round = null;
    if (isFresh) return;
    const cosigned = event('CheckpointCosigned', {
      origin,
      size: String(size),
      root: toBase64(root),
      note,
      cosignatures: policy.witnesses.flatMap(({ name, key }) => {
        const found = cosignatures.get(name);
        return found === undefined ? [] : [{ ...found, name: key.name }];
      }),
      quorum: policy.quorum?.name ?? 'none',
      cosignedAt: isoNow(this.#deps),
    });
    const events = envelope(this.#deps, [cosigned], STREAM.logWitnesses);
    const { expected } = this.#recorded;
    const append = appendUntilKnown(this.#deps, STREAM.logWitnesses, expected, events);
    const appended = await unlessOvertaken(append);
    // Otherwise another process has recorded it, or a later one: the next look reads which.
    if (appended === null) return;
    this.#recorded = { expected: appended.nextRevision, last: cosigned.data };
    this.#waitingSince = null;
  }
}

const isSame = (a: StoredNote, b: StoredNote): boolean => a.size === b.size && sameHash(a.root, b.root);
