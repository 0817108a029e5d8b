// Parses the arguments of the verifier. Throws for a caller's mistake.

import { fromJwkSet, type KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { parsedJson } from '../domain/canonical-json.ts';
import {
  disclosuresOf,
  type NoDocument,
  type ReceiptDocument,
  readReceiptDocument,
  receiptDocumentOf,
} from '../domain/receipt/document.ts';
import type { LogFacts } from '../domain/receipt/verify.ts';
import {
  parseWitnessPolicy,
  policyProblemText,
  type WitnessPolicy,
} from '../domain/transparency/witness-policy.ts';

/** As text, or as parsed JSON. */
export type Given = string | object;

/** What was given cannot be worked with. To callers a TypeError; apart from one that is our own fault. */
export class UnusableInput extends TypeError {}

export function documentOf(receipt: Given): ReceiptDocument | NoDocument {
  if (typeof receipt === 'string') return readReceiptDocument(receipt);
  if (typeof receipt !== 'object' || receipt === null)
    throw new UnusableInput('the receipt must be a text or parsed JSON');
  return receiptDocumentOf(receipt);
}

export function keySetOf(options: { readonly keys: Given } | undefined): readonly KeyRecord[] {
  const { keys: given }: { readonly keys?: unknown } = options ?? {};
  if (given === undefined || given === null)
    throw new UnusableInput("keys are missing: the relay's JWK set, from its /.well-known/jwks.json");
  const keys = fromJwkSet(typeof given === 'string' ? parsedJson(given) : given);
  if (keys === null) throw new UnusableInput('keys is no JWK set (RFC 7517)');
  if (keys.length === 0) throw new UnusableInput('keys contains no Ed25519 key');
  return keys;
}

export function disclosureTexts(given: Given | undefined): readonly string[] | null {
  if (given === undefined) return null;
  const texts = disclosuresOf(typeof given === 'string' ? parsedJson(given) : given);
  if (texts !== null) return texts;
  throw new UnusableInput('disclosures must be an array of texts, or an execution response that has them');
}

export function logFacts({
  proof,
  policy,
  now = Math.floor(Date.now() / 1000),
}: LogOptions): LogFacts | null {
  const witnesses = policy === undefined ? null : policyOf(policy);
  if (proof === undefined) {
    if (witnesses === null) return null;
    throw new UnusableInput(
      'policy needs a proof, from /log/proof/{receiptId}, or null if the relay has none',
    );
  }
  if (proof !== null) proofText(proof);
  if (!Number.isFinite(now)) throw new UnusableInput('now must be a number of seconds');
  return { proof, now, policy: witnesses };
}

type LogOptions = {
  readonly proof?: string | null | undefined;
  readonly policy?: string | undefined;
  readonly now?: number | undefined;
};

function policyOf(text: string): WitnessPolicy {
  if (typeof text !== 'string')
    throw new UnusableInput('policy must be the text of a policy file (C2SP tlog-policy)');
  const { policy, problem } = parseWitnessPolicy(text);
  if (policy === null) throw new UnusableInput(`policy is no policy file: ${policyProblemText(problem)}`);
  return policy;
}

export function proofText(proof: string): string {
  if (typeof proof !== 'string') throw new UnusableInput('the proof must be the text of a proof file');
  return proof;
}

export function noteText(checkpoint: string): string {
  if (typeof checkpoint !== 'string')
    throw new UnusableInput('a checkpoint must be the text of a signed note');
  return checkpoint;
}
