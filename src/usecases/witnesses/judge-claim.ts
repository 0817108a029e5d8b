// A witness states that it has cosigned a larger checkpoint than the log has: whether that is proven.
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import type { Checkpoints } from '#src/usecases/transparency/checkpoints.ts';
import type { AskedWitness } from './ask-witness.ts';
import { evolveWitness, type WitnessState } from './witness-state.ts';

/**
 * Fetches the checkpoint that the witness publishes. Only a signature of this log proves that a checkpoint is missing: the
 * statement of a witness does not. `origin`: of the log. Throws what a read of the event log throws.
 */
export async function judgeClaim(
  { known: { name }, port }: AskedWitness,
  state: WitnessState,
  { lacks, witnessPublished }: Pick<Checkpoints, 'lacks' | 'witnessPublished'>,
  origin: string,
  ending: AbortSignalLike,
): Promise<WitnessState> {
  const { refusal, stated } = state;
  if (refusal !== 'states_larger_size_without_proof' || stated === null) return state;
  if (!(await lacks(stated))) return evolveWitness(state, { is: 'overtaken' });
  const published = await port.checkpoint(origin, ending);
  const isProven = published.is === 'published' && (await witnessPublished(name, published.note));
  return isProven ? evolveWitness(state, { is: 'proved' }) : state;
}
