// One round: a checkpoint, and what the witnesses have cosigned so far.
import {
  judgeQuorum,
  type PolicyCosignature,
  type QuorumPolicy,
} from '#src/domain/transparency/witness-policy.ts';
import { Cancel } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { StoredNote } from '#src/usecases/transparency/checkpoint-state.ts';

/** After the quorum, the other witnesses have this long to be recorded with it. */
const OTHERS_MS = 2000;

export class WitnessRound {
  readonly checkpoint: StoredNote;
  readonly #policy: QuorumPolicy;
  readonly #cosignatures = new Map<string, PolicyCosignature>();
  readonly #quorum = Promise.withResolvers<void>();

  constructor(checkpoint: StoredNote, policy: QuorumPolicy) {
    this.checkpoint = checkpoint;
    this.#policy = policy;
  }

  /** By the names of the policy. */
  get cosignatures(): ReadonlyMap<string, PolicyCosignature> {
    return this.#cosignatures;
  }

  add(name: string, cosignature: PolicyCosignature): void {
    this.#cosignatures.set(name, cosignature);
    if (this.hasQuorum()) this.#quorum.resolve();
  }

  /** With `quorum none`: as soon as one has cosigned. */
  hasQuorum(): boolean {
    const names = new Set(this.#cosignatures.keys());
    return names.size > 0 && judgeQuorum(this.#policy, names).met;
  }

  /**
   * Resolves when `questions` does, or a while after the quorum. Rejects as `questions` does until then; `behind` gets what they
   * reject with later.
   */
  async settled(
    questions: Promise<unknown>,
    clock: Pick<Clock, 'sleep'>,
    behind: (cause: unknown) => void,
  ): Promise<void> {
    const over = new Cancel();
    questions.catch((cause: unknown) => {
      if (over.aborted) behind(cause);
    });
    const isEnough = this.#quorum.promise.then(() => clock.sleep(OTHERS_MS, over));
    try {
      await Promise.race([questions, isEnough]);
    } finally {
      over.abort();
    }
  }
}
