// Our own keys: Ed25519 for receipts, webhooks and checkpoints, and the one HMAC secret that never leaves.

/** One key pair at hand, for as long as what is signed with it takes. */
export type SigningKey = {
  /** RFC 7638 thumbprint. */
  readonly keyId: string;
  /** 64-byte Ed25519 signature (RFC 8032). */
  sign(message: Uint8Array): Promise<Uint8Array>;
};

/** Keys change while the process runs: take one for each thing that is signed, and put its id in it. */
export interface Signer {
  /**
   * The key for what is issued `at` (Unix ms; default: now). Throws `Fault` `internal_error` if this process has no key
   * that is valid then.
   */
  current(at?: number): SigningKey;
  /** The key for repeating what was issued `at` (Unix ms), retired or not; null if it is no longer in the key file. */
  former(at: number): SigningKey | null;
}

export interface CheckpointSigner {
  /** null: this process has no checkpoint key that is valid now. `x`: public key, 32 bytes, base64url. */
  current(): (SigningKey & { readonly x: string }) | null;
}

export interface KeyedHash {
  /** HMAC-SHA-256 of UTF-8 `label`, a zero byte and UTF-8 `text`: 32 bytes. Labels keep the uses apart. */
  mac(label: string, text: string): Uint8Array;
}
