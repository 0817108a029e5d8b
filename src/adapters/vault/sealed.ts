// A vault over a store of keys: AES-256-GCM with one random key for each text. `<id>.<base64url of iv, ciphertext, tag>`.
import { createCipheriv, createDecipheriv, randomBytes, randomUUID } from 'node:crypto';
import { type Vault, VaultUnavailable } from '#src/ports/vault.ts';

/** Where the keys are. `untilMs`: Unix ms after which `deleteEnded` may delete a key. */
export type KeyStore = {
  insert(id: string, key: Uint8Array, untilMs: number): Promise<void>;
  find(id: string): Promise<Uint8Array | null>;
  delete(ids: readonly string[]): Promise<void>;
  deleteEnded(): Promise<void>;
  now(): Promise<number | null>;
  close(): Promise<void>;
};

const IV_BYTES = 12;
const TAG_BYTES = 16;

export function sealedVault(store: KeyStore): Vault {
  return {
    async put(text, untilMs) {
      const [id, key, iv] = [randomUUID(), randomBytes(32), randomBytes(IV_BYTES)];
      const cipher = createCipheriv('aes-256-gcm', key, iv);
      const sealed = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
      await surely(store.insert(id, key, untilMs));
      await surely(store.deleteEnded());
      return `${id}.${sealed.toString('base64url')}`;
    },
    async take(sealed) {
      const key = await surely(store.find(idOf(sealed)));
      return key === null
        ? null
        : opened(key, Buffer.from(sealed.slice(idOf(sealed).length + 1), 'base64url'));
    },
    remove: (sealed) => (sealed.length === 0 ? Promise.resolve() : surely(store.delete(sealed.map(idOf)))),
    now: () => surely(store.now()),
    close: () => store.close(),
  };
}

const idOf = (sealed: string): string => sealed.slice(0, Math.max(0, sealed.indexOf('.')));

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
