// What a process knows of all its witnesses.
import type { WitnessStatus } from '#src/domain/monitoring/witnesses.ts';
import { keyIdText } from '#src/domain/transparency/cosignature.ts';
import {
  judgeQuorum,
  type PolicyWitness,
  type QuorumPolicy,
} from '#src/domain/transparency/witness-policy.ts';
import { iso } from '#src/lib/iso.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { WitnessClaim } from '#src/usecases/transparency/checkpoint-state.ts';
import type { CosignedRecord } from './cosigned-record.ts';
import { UNKNOWN_WITNESS, type WitnessState } from './witness-state.ts';

export class WitnessStates {
  readonly #states: Map<string, WitnessState>;
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
    this.#states = new Map();
  }

  of(name: string): WitnessState {
    return this.#states.get(name) ?? UNKNOWN_WITNESS;
  }

  /** What the last recorded round says of them. */
  recall(witnesses: readonly PolicyWitness[], { last }: CosignedRecord): void {
    for (const { name, key } of witnesses) {
      const keyId = keyIdText(key);
      const own = last?.cosignatures.find((line) => line.name === key.name && line.keyId === keyId);
      if (own === undefined || last === null) continue;
      this.#states.set(name, { ...UNKNOWN_WITNESS, size: Number(last.size), cosignedAt: own.time });
    }
  }

  /** Reports its refusal. */
  set(name: string, state: WitnessState): void {
    this.#states.set(name, state);
    const { refusal: reason, stated: size } = state;
    const refused = reason === 'states_larger_size_without_proof' ? 'unproven' : 'refusing';
    const facts = { item: name, witness: name, ...(reason !== null && { reason }) };
    const stated = refused === 'unproven' ? { size } : {};
    this.#logger.condition('witness', reason && refused, { ...facts, ...stated });
  }

  /** The sizes above `size` that witnesses have stated without a proof, if those witnesses are a quorum; otherwise empty. */
  quorumClaims(policy: QuorumPolicy, size: number): readonly WitnessClaim[] {
    const claims = policy.witnesses.flatMap(({ name }) => {
      const { stated } = this.of(name);
      return stated !== null && stated > size ? [{ witness: name, size: stated }] : [];
    });
    // With `quorum none` no statement counts: none is required for anything.
    if (policy.quorum === null) return [];
    return judgeQuorum(policy, new Set(claims.map(({ witness }) => witness))).met ? claims : [];
  }

  /** Checkpoints of other histories that this log has signed, as witnesses publish them. */
  forks({ witnesses }: Pick<QuorumPolicy, 'witnesses'>): readonly WitnessClaim[] {
    return witnesses.flatMap(({ name }) => {
      const { forked } = this.of(name);
      return forked === null ? [] : [{ witness: name, size: forked }];
    });
  }

  status(name: string): WitnessStatus {
    const { refusal, cosignedAt } = this.of(name);
    return { name, refusal, cosignedAt: cosignedAt === null ? null : iso(cosignedAt * 1000) };
  }
}
