// The private keys of this process and the secret beside them, where they are kept: the key file.
import type { HeldKey } from '#src/domain/signing-keys/local-keys.ts';
import type { SigningKey } from './signer.ts';

export type StoredKey = HeldKey & SigningKey;

export type KeyStoreContent = {
  /** In the order of the file: the first active one of a purpose signs before the others. */
  readonly keys: readonly StoredKey[];
  /** HMAC of a constant under the HMAC secret, hex: tells two secrets apart without telling either. */
  readonly secretCheck: string;
};

export type KeyFileChange = {
  /** Purposes: for each a fresh active key is put in front. */
  readonly fresh: readonly string[];
  /** Key ids to be marked retired; they stay in the file. */
  readonly retired: readonly string[];
};

/** All calls throw where the store cannot be read or changed as it is; the message is for the operator. */
export interface KeyStore {
  read(): KeyStoreContent;
  /** null: as it was when last asked, or first read. Costs next to nothing then. */
  readIfChanged(): KeyStoreContent | null;
  /**
   * One change of what stands there at that moment, durable before this returns, and what then stands there. Several
   * processes at once lose nothing. `change` is called once, and answers null where nothing is to be done.
   */
  update(change: (content: KeyStoreContent) => KeyFileChange | null): KeyStoreContent;
}
