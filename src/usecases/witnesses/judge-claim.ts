// A witness states that it has cosigned a larger checkpoint than the log has, or refuses the proof: whether a checkpoint that it
// publishes proves that this log has signed another history.
import { sameHash } from '#src/domain/transparency/merkle.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import type { Checkpoints } from '#src/usecases/transparency/checkpoints.ts';
import type { AskedWitness, Asking } from './ask-witness.ts';
import { evolveWitness, type WitnessState } from './witness-state.ts';

/** `origin`: of the log. `asking`: what the witness was given. */
export type JudgedClaim = { readonly origin: string; readonly asking: Pick<Asking, 'size' | 'root'> };

/**
 * Fetches the checkpoint that the witness publishes. Only a signature of this log proves that a checkpoint is missing, or of another
 * history: the statement of a witness does not. Throws what reads of the event log and of the rows throw.
 */
export async function judgeClaim(
  { known: { name }, port }: AskedWitness,
  state: WitnessState,
  { lacks, signedHere, witnessPublished }: Pick<Checkpoints, 'lacks' | 'signedHere' | 'witnessPublished'>,
  { origin, asking }: JudgedClaim,
  ending: AbortSignalLike,
): Promise<WitnessState> {
  const { refusal, stated } = state;
  if (refusal === 'http_422') {
    const published = await port.checkpoint(origin, ending);
    const found = published.is === 'published' ? await signedHere(published.note) : null;
    if (found === null || found.size > asking.size) return state;
    const isOurs = sameHash(await asking.root(found.size), found.root);
    return isOurs ? state : evolveWitness(state, { is: 'forked', size: found.size });
  }
  if (refusal !== 'states_larger_size_without_proof' || stated === null) return state;
  if (!(await lacks(stated))) return evolveWitness(state, { is: 'overtaken' });
  const published = await port.checkpoint(origin, ending);
  const isProven = published.is === 'published' && (await witnessPublished(name, published.note));
  return isProven ? evolveWitness(state, { is: 'proved' }) : state;
}
