// Checks the events of the signing keys: each key is announced once, its id is its thumbprint, and its retirement is valid.
import { sha256, toBase64url, utf8 } from '#src/domain/encoding.ts';
import { type KeyRecord, thumbprintText } from '#src/domain/signing-keys/keys.ts';
import type { EventOf, KeyEvent } from '../events.ts';
import type { Fault } from './finding.ts';

export type KeyFacts = {
  readonly keys: readonly KeyRecord[];
  /** Of the first activation; null before it. */
  readonly secretCheck: string | null;
};

export function keyFaults(known: KeyFacts, event: KeyEvent): readonly Fault[] {
  switch (event.type) {
    case 'SigningKeyActivated':
      return activationFaults(known, event.data);
    case 'SigningKeyRetired':
      return retirementFaults(known, event.data);
    default:
      return event satisfies never;
  }
}

const impossible = (message: string): Fault => ({ kind: 'key_event_impossible', message });

function activationFaults(
  { keys, secretCheck }: KeyFacts,
  { keyId, x, secretCheck: own }: EventOf<'SigningKeyActivated'>['data'],
): readonly Fault[] {
  const faults: Fault[] = [];
  if (keys.some((key) => key.keyId === keyId)) faults.push(impossible('the key was announced before'));
  if (toBase64url(sha256(utf8(thumbprintText(x)))) !== keyId) {
    faults.push({ kind: 'key_id_mismatch', message: 'the id of the key is not its thumbprint' });
  }
  if (secretCheck !== null && secretCheck !== own) {
    const message = 'announced with another HMAC secret than the first key';
    faults.push({ kind: 'key_secret_differs', message });
  }
  return faults;
}

function retirementFaults(
  { keys }: KeyFacts,
  { keyId, reason, effectiveAt, compromisedAt, retiredAt }: EventOf<'SigningKeyRetired'>['data'],
): readonly Fault[] {
  const faults: Fault[] = [];
  if (!keys.some((key) => key.keyId === keyId)) faults.push(impossible('the key was never announced'));
  if ((reason === 'compromised') !== (compromisedAt !== null))
    faults.push(impossible('only a compromised key has a time of compromise'));
  if (effectiveAt < retiredAt) faults.push(impossible('the retirement takes effect before it is recorded'));
  return faults;
}
