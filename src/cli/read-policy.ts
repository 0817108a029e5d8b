// Reads a policy file (C2SP tlog-policy) that the user names.
import {
  parseWitnessPolicy,
  policyProblemText,
  type WitnessPolicy,
} from '../domain/transparency/witness-policy.ts';
import { CannotRun } from './exit.ts';
import { nameOf, readSource } from './read-source.ts';

/** Throws `CannotRun` with the line and the reason. */
export async function readPolicy(source: string): Promise<WitnessPolicy> {
  const { policy, problem } = parseWitnessPolicy(await readSource(source));
  if (policy === null)
    throw new CannotRun(
      `${nameOf(source)} is no policy file (C2SP tlog-policy): ${policyProblemText(problem)}`,
    );
  return policy;
}
