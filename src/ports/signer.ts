// Our own keys: Ed25519 for receipts and webhooks, and the one HMAC secret that never leaves.

export interface Signer {
  /** RFC 7638 thumbprint of the key that signs now. */
  readonly keyId: string;
  /** 64-byte Ed25519 signature (RFC 8032). */
  sign(message: Uint8Array): Promise<Uint8Array>;
}

export interface KeyedHash {
  /** HMAC-SHA-256 of UTF-8 `label`, a zero byte and UTF-8 `text`: 32 bytes. Labels keep the uses apart. */
  mac(label: string, text: string): Uint8Array;
}

export interface Digest {
  sha256(bytes: Uint8Array): Uint8Array;
}
