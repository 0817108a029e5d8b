// The witnesses of the configuration, over HTTP.
import { httpWitness } from '#src/adapters/witness/http.ts';
import type { Config } from '#src/config.ts';
import type { JournalDeps } from '#src/usecases/process/stream.ts';
import { Witnesses } from '#src/usecases/witnesses/witnesses.ts';
import { verifierPrimitives } from './keys.ts';

/** null: the log has no witnesses. Throws what a read of the event log throws. */
export async function openWitnesses(
  { witnesses: configured }: Pick<Config, 'witnesses'>,
  journal: JournalDeps,
  stopping: AbortSignal,
): Promise<Witnesses | null> {
  if (configured === null) return null;
  const { policy, intervalMs } = configured;
  const witnesses = policy.witnesses.map((known) => ({ known, port: httpWitness(known.url) }));
  const { quorum } = policy;
  const primitives = verifierPrimitives;
  const asking = new Witnesses({ ...journal, witnesses, quorum, intervalMs, primitives, stopping });
  await asking.open();
  return asking;
}
