// The private keys of this process and its HMAC secret: the key file.
import type { HeldKey } from '#src/domain/signing-keys/keys.ts';
import type { PublishedKey, SigningKey } from './signer.ts';

/** `agentKey`: derived from a receipt key, signs outbound requests (RFC 9421); null for a key of another purpose. */
export type StoredKey = HeldKey & SigningKey & { readonly agentKey: PublishedKey | null };

export type KeyStoreContent = {
  /** In the order of the file: the first active one of a purpose signs before the others. */
  readonly keys: readonly StoredKey[];
  /** HMAC of a constant under the HMAC secret, hex: compares secrets without revealing them. */
  readonly secretCheck: string;
};

export type KeyFileChange = {
  /** Purposes. For each, a new active key is added in front of the others. */
  readonly fresh: readonly string[];
  /** Ids of keys to mark as retired; they remain in the file. */
  readonly retired: readonly string[];
};

/** All calls throw if the store cannot be read or changed; the message is for the operator. */
export interface KeyStore {
  read(): KeyStoreContent;
  /**
   * Changes the current content atomically and durably, and returns the new content. Concurrent changes by several
   * processes are all kept. `change` is called once, and returns null to change nothing.
   */
  update(change: (content: KeyStoreContent) => KeyFileChange | null): KeyStoreContent;
}
