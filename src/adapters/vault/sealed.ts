// A vault over a store of sealed texts: AES-256-GCM with a key of its own for each name, derived from a random one, which is
// stored and deleted with the text, and the service's secret: a copy of the store alone cannot be read.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { toHex } from '#src/domain/encoding.ts';
import type { KeyedHash } from '#src/ports/signer.ts';
import { type Sealing, type Vault, VaultUnavailable } from '#src/ports/vault.ts';

/** `sealed` null: it is in the event log, from a release that stored it there. */
type Stored = { readonly key: Uint8Array; readonly sealed: Uint8Array | null };
export type NewText = Omit<Sealing, 'text'> & Stored;

export type TextStore = {
  /** Stores the text unless the name has one, or its holder has `max`. Atomic among processes. */
  insert(text: NewText): Promise<void>;
  find(name: string): Promise<Stored | null>;
  /** The amounts of its texts, decimal. */
  held(holder: string): Promise<readonly (string | null)[]>;
  delete(names: readonly string[]): Promise<void>;
  names(): Promise<readonly string[]>;
  deleteEnded(): Promise<void>;
  now(): Promise<number | null>;
  close(): Promise<void>;
};

const IV_BYTES = 12;
const TAG_BYTES = 16;

export function sealedVault(store: TextStore, keyedHash: KeyedHash): Vault {
  const keyOf = (name: string, key: Uint8Array) => keyedHash.mac('vault', `${name} ${toHex(key)}`);
  return {
    async put({ text, ...sealing }) {
      const { name } = sealing;
      await surely(store.deleteEnded());
      const key = randomBytes(32);
      await surely(store.insert({ ...sealing, key, sealed: sealedWith(keyOf(name, key), text) }));
      const stored = await surely(store.find(name));
      if (stored === null || stored.sealed !== null) return stored && name;
      // A purchase that an earlier release has begun ends as it would have there.
      return `${name}.${sealedWith(stored.key, text).toString('base64url')}`;
    },
    async held(holder) {
      const amounts = await surely(store.held(holder));
      return amounts.map((amount) => (amount === null ? null : BigInt(amount)));
    },
    async take(sealed) {
      const [name = '', inLog] = sealed.split('.');
      const stored = await surely(store.find(name));
      if (stored === null) return null;
      if (inLog !== undefined) return opened(stored.key, Buffer.from(inLog, 'base64url'));
      return stored.sealed && opened(keyOf(name, stored.key), stored.sealed);
    },
    remove: (names) => (names.length === 0 ? Promise.resolve() : surely(store.delete(names))),
    names: () => surely(store.names()),
    now: () => surely(store.now()),
    close: () => store.close(),
  };
}

function sealedWith(key: Uint8Array, text: string): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  return Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

/** null: it is not the ciphertext of this key. */
function opened(key: Uint8Array, sealed: Uint8Array): string | null {
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
