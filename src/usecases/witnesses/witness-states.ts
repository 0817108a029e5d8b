// What a process knows of all its witnesses.
import type { WitnessStatus } from '#src/domain/monitoring/witnesses.ts';
import { keyIdText } from '#src/domain/transparency/cosignature.ts';
import type { PolicyWitness } from '#src/domain/transparency/witness-policy.ts';
import { iso } from '#src/lib/iso.ts';
import type { Logger } from '#src/ports/logger.ts';
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

  /** Logs a change of its refusal, once. */
  set(name: string, state: WitnessState): void {
    const { refusal: before } = this.of(name);
    this.#states.set(name, state);
    const { refusal } = state;
    if (refusal === before) return;
    if (refusal === null) this.#logger.info('a witness cosigns again', { witness: name });
    else
      this.#logger.warn('a witness does not cosign the newest checkpoint', {
        witness: name,
        reason: refusal,
      });
  }

  status(name: string): WitnessStatus {
    const { refusal, cosignedAt } = this.of(name);
    return { name, refusal, cosignedAt: cosignedAt === null ? null : iso(cosignedAt * 1000) };
  }
}
