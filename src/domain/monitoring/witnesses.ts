// What the service states about the witnesses of its transparency log.

export type WitnessesStatus = {
  readonly configured: number;
  /** Name on the policy's `quorum` line; `none`: no cosignature is required. */
  readonly quorum: string;
  /** When a quorum was last recorded, RFC 3339; null: never. */
  readonly lastCosignedAt: string | null;
  /** How long a checkpoint has waited for a quorum; 0: the newest one has it. */
  readonly lagSeconds: number;
  /** In the policy's order. */
  readonly witnesses: readonly WitnessStatus[];
};

export type WitnessStatus = {
  /** As the policy names it. */
  readonly name: string;
  /** Why it has not cosigned the last checkpoint that it was given, a code; null: it has, or was not asked yet. */
  readonly refusal: string | null;
  /** Of its last cosignature, by its own clock, RFC 3339; null: none is known. */
  readonly cosignedAt: string | null;
};

/** As it is published. */
export function witnessesShown({ witnesses, ...status }: WitnessesStatus) {
  const refusing = witnesses.flatMap(({ name, refusal }) =>
    refusal === null ? [] : [{ name, reason: refusal }],
  );
  return { ...status, refusing };
}
