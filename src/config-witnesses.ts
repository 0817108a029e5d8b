// The file of WITNESS_POLICY_FILE: a C2SP tlog-policy whose witnesses this relay asks.
import { readFileSync } from 'node:fs';
import { type Parse, Problem, serviceUrl } from './config-values.ts';
import {
  type PolicyWitness,
  parseWitnessPolicy,
  policyProblemText,
  type WitnessPolicy,
} from './domain/transparency/witness-policy.ts';

/** A witness that can be asked: `url` is its submission prefix (C2SP tlog-witness), an http or https URL. */
export type ReachableWitness = PolicyWitness & { readonly url: string };

export type AskedPolicy = Omit<WitnessPolicy, 'witnesses'> & {
  readonly witnesses: readonly ReachableWitness[];
};

/** The policy in the file at this path. Throws `Problem` with the line and the reason. */
export const witnessPolicyFile: Parse<AskedPolicy> = (path) => {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(path);
  } catch {
    throw new Problem('names a file that cannot be read');
  }
  const { policy, problem } = parseWitnessPolicy(bytes);
  if (problem !== null) throw new Problem(`names a wrong witness policy: ${policyProblemText(problem)}`);
  if (policy.witnesses.length === 0) throw new Problem('names a witness policy without a witness line');
  return { ...policy, witnesses: policy.witnesses.map((witness) => ({ ...witness, url: urlOf(witness) })) };
};

function urlOf({ name, url, line }: PolicyWitness): string {
  const wrong = (reason: string) =>
    new Problem(
      `names a wrong witness policy: ${policyProblemText({ line, reason: `the witness ${name} ${reason}` })}`,
    );
  if (url === null) throw wrong('has no URL, at which this relay could ask it');
  try {
    return serviceUrl(url);
  } catch (error) {
    throw error instanceof Problem ? wrong(`has a URL that ${error.message}`) : error;
  }
}
