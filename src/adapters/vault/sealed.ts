// A vault over a store of keys: AES-256-GCM with one random key for each name. `<name>.<base64url of iv, ciphertext, tag>`.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { type Sealing, type Vault, VaultUnavailable } from '#src/ports/vault.ts';

export type NewKey = Omit<Sealing, 'text'> & { readonly key: Uint8Array };

/** Where the keys are. */
export type KeyStore = {
  /** Stores the key unless the name has one, or its holder has `max`. Atomic among processes. */
  insert(key: NewKey): Promise<void>;
  find(name: string): Promise<Uint8Array | null>;
  held(holder: string): Promise<number>;
  delete(names: readonly string[]): Promise<void>;
  names(): Promise<readonly string[]>;
  deleteEnded(): Promise<void>;
  now(): Promise<number | null>;
  close(): Promise<void>;
};

const IV_BYTES = 12;
const TAG_BYTES = 16;

export function sealedVault(store: KeyStore): Vault {
  return {
    async put({ text, ...sealing }) {
      await surely(store.deleteEnded());
      await surely(store.insert({ ...sealing, key: randomBytes(32) }));
      const key = await surely(store.find(sealing.name));
      if (key === null) return null;
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, iv);
      const sealed = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
      return `${sealing.name}.${sealed.toString('base64url')}`;
    },
    held: (holder) => surely(store.held(holder)),
    async take(sealed) {
      const name = sealed.slice(0, Math.max(0, sealed.indexOf('.')));
      const key = await surely(store.find(name));
      return key === null ? null : opened(key, Buffer.from(sealed.slice(name.length + 1), 'base64url'));
    },
    remove: (names) => (names.length === 0 ? Promise.resolve() : surely(store.delete(names))),
    names: () => surely(store.names()),
    now: () => surely(store.now()),
    close: () => store.close(),
  };
}

/** null: it is not the ciphertext of this key. */
function opened(key: Uint8Array, sealed: Buffer): string | null {
  if (sealed.length < IV_BYTES + TAG_BYTES) return null;
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, IV_BYTES));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    const text = decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES));
    return Buffer.concat([text, decipher.final()]).toString('utf8');
  } catch {
    return null;
  }
}

async function surely<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    throw new VaultUnavailable(cause);
  }
}
