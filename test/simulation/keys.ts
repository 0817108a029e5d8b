// The keys of a deployment: the same in every run, so that signatures are.
import { createPrivateKey, type KeyObject } from 'node:crypto';
import { ed25519SigningKey, publicX, rememberingVerify, thumbprint } from '#src/adapters/signing/ed25519.ts';
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import type { KeyStore, StoredKey } from '#src/ports/key-store.ts';
import { hashWith } from '#test/support/given/primitives.ts';
import { keyStoreOf } from '#test/support/world/fakes-keys.ts';

/** Valid signatures are remembered: many processes verify the same ones. */
export const primitives: Primitives = { ed25519Verify: rememberingVerify() };

export const keyedHash = hashWith('the secret of the simulated deployment');

export function fixedPrivateKey(byte: number): KeyObject {
  // PKCS #8 of an Ed25519 key (RFC 8410 §7) up to its 32 bytes.
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.alloc(32, byte)]);
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

function fixedKey(purpose: string, byte: number): StoredKey {
  const privateKey = fixedPrivateKey(byte);
  const x = publicX(privateKey);
  return { ...ed25519SigningKey(thumbprint(x), privateKey), x, purpose, status: 'active', agentKey: null };
}

/** As `src/app/keys.ts` reads them of the key file: a backup of the event log may lack the newest. */
export const checkpointRecord = ({ keyId, purpose, x }: StoredKey): KeyRecord[] =>
  purpose === 'checkpoint' ? [{ keyId, purpose, x, notBefore: 0, notAfter: null, compromisedAt: null }] : [];

/** The key file of a deployment, which every machine has a copy of. Its fresh keys are the same in every run. */
export function keyFile(): KeyStore {
  let made = 2;
  const keys = [fixedKey('receipt', 0x11), fixedKey('checkpoint', 0x22)];
  return keyStoreOf(keys, (purpose) => fixedKey(purpose, 0x11 * ++made));
}
