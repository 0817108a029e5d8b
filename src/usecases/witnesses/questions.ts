// The questions to all witnesses, at most one to each at a time. No answer is waited for longer than a round takes.

import { sameHash } from '#src/domain/transparency/merkle.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import { isOutage } from '#src/ports/outage.ts';
import type { Checkpoints } from '#src/usecases/transparency/checkpoints.ts';
import { type AskDeps, type AskedWitness, type Asking, askWitness } from './ask-witness.ts';
import type { WitnessRound } from './round.ts';
import { evolveWitness, type WitnessState } from './witness-state.ts';
import type { WitnessStates } from './witness-states.ts';

export type QuestionsDeps = Omit<AskDeps, 'clock'> & {
  readonly clock: AskDeps['clock'] & Parameters<WitnessRound['settled']>[1];
  readonly stopping: AbortSignalLike;
};

export class Questions {
  readonly #deps: QuestionsDeps;
  readonly #states: WitnessStates;
  readonly #open = new Map<string, Promise<void>>();

  constructor(deps: QuestionsDeps, states: WitnessStates) {
    this.#deps = deps;
    this.#states = states;
  }

  /** Whether this witness has not answered yet. */
  isOpen(name: string): boolean {
    return this.#open.has(name);
  }

  /**
   * Asks all of `due` at once. Resolves when they have answered, or a while after the quorum; a later answer changes only what is
   * known of its witness. Throws what reads of the log and of the rows throw.
   */
  async ask(
    due: readonly AskedWitness[],
    asking: Asking,
    round: WitnessRound,
    checkpoints: Pick<Checkpoints, 'lacks' | 'signedHere' | 'witnessPublished'>,
  ): Promise<void> {
    const { clock, stopping } = this.#deps;
    const question = async (witness: AskedWitness) => {
      const { name } = witness.known;
      const { state, cosignature } = await askWitness(this.#deps, witness, this.#states.of(name), asking);
      const claim = { origin: round.checkpoint.origin, asking };
      this.#states.set(name, await judgeClaim(witness, state, checkpoints, claim, stopping));
      if (cosignature !== null) round.add(name, cosignature);
    };
    const questions = due.map((witness) => {
      const { name } = witness.known;
      const answered = question(witness).finally(() => this.#open.delete(name));
      this.#open.set(name, answered);
      return answered;
    });
    await round.settled(Promise.all(questions), clock, (cause) => this.report(cause));
  }

  /** Resolves when all have answered. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#open.values());
  }

  /** Logs what was thrown, unless it is an outage, which others log. */
  report(cause: unknown): void {
    const { logger, stopping } = this.#deps;
    if (!isOutage(cause) && !stopping.aborted) logger.bug('the witnesses could not be asked', { cause });
  }
}

// ── judge claim ──────────────────────────────────────────────────────────────────────────────────────
// A witness states that it has cosigned a larger checkpoint than the log has, or refuses the proof: whether a checkpoint that it
// publishes proves that this log has signed another history.

/** `origin`: of the log. `asking`: what the witness was given. */
type JudgedClaim = { readonly origin: string; readonly asking: Pick<Asking, 'size' | 'root'> };

/**
 * Fetches the checkpoint that the witness publishes. Only a signature of this log proves that a checkpoint is missing, or of another
 * history: the statement of a witness does not. Throws what reads of the event log and of the rows throw.
 */
async function judgeClaim(
  { known: { name }, port }: AskedWitness,
  state: WitnessState,
  { lacks, signedHere, witnessPublished }: Pick<Checkpoints, 'lacks' | 'signedHere' | 'witnessPublished'>,
  { origin, asking }: JudgedClaim,
  ending: AbortSignalLike,
): Promise<WitnessState> {
  const { refusal, stated } = state;
  if (refusal === 'http_422') {
    const published = await port.checkpoint(origin, ending);
    const found = published.kind === 'published' ? await signedHere(published.note) : null;
    if (found === null || found.size > asking.size) return state;
    const isOurs = sameHash(await asking.root(found.size), found.root);
    return isOurs ? state : evolveWitness(state, { kind: 'forked', size: found.size });
  }
  if (refusal !== 'states_larger_size_without_proof' || stated === null) return state;
  if (!(await lacks(stated))) return evolveWitness(state, { kind: 'overtaken' });
  const published = await port.checkpoint(origin, ending);
  const isProven = published.kind === 'published' && (await witnessPublished(name, published.note));
  return isProven ? evolveWitness(state, { kind: 'proved' }) : state;
}
