// The keys of a deployment: the same in every run, so that signatures are.
import { createPrivateKey, type KeyObject } from 'node:crypto';
import { ed25519SigningKey, publicX, rememberingVerify, thumbprint } from '#src/adapters/signing/ed25519.ts';
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import type { KeyFileChange, KeyStore, KeyStoreContent, StoredKey } from '#src/ports/key-store.ts';
import { hashWith } from '#test/support/primitives.ts';

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
export class KeyFile implements KeyStore {
  #made = 2;
  #content: KeyStoreContent = {
    keys: [fixedKey('receipt', 0x11), fixedKey('checkpoint', 0x22)],
    secretCheck: '3'.repeat(64),
  };

  read(): KeyStoreContent {
    return this.#content;
  }

  update(change: (content: KeyStoreContent) => KeyFileChange | null): KeyStoreContent {
    const made = change(this.#content);
    if (made === null) return this.#content;
    const fresh = made.fresh.map((purpose) => fixedKey(purpose, 0x11 * ++this.#made));
    const kept = this.#content.keys.map((key) =>
      made.retired.includes(key.keyId) ? { ...key, status: 'retired' as const } : key,
    );
    this.#content = { ...this.#content, keys: [...fresh, ...kept] };
    return this.#content;
  }
}
