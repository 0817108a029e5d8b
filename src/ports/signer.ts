// The keys of this process: Ed25519 keys for receipts, webhooks and checkpoints, and the HMAC secret; those of a witness.
import type { CosignerKey } from '#src/domain/transparency/cosignature.ts';

export type SigningKey = {
  /** RFC 7638 thumbprint. */
  readonly keyId: string;
  /** 64-byte Ed25519 signature (RFC 8032). */
  sign(message: Uint8Array): Promise<Uint8Array>;
};

/** Keys change while the process runs: get the key for each signature, and include its id in what is signed. */
export interface Signer {
  /**
   * The key for a document issued `at` (Unix ms; default: now). Throws `Fault` `no_signing_key` if this process has no key
   * that is valid at that time.
   */
  current(at?: number): SigningKey;
  /** The key of a document issued `at` (Unix ms), to sign it again, retired or not; null if the key file lacks it. */
  former(at: number): SigningKey | null;
}

export type CheckpointKey = PublishedKey;

/**
 * The keys by which this relay signs its outbound requests (RFC 9421). Each is derived from a receipt key of the key file, and
 * is rotated, retired and compromised with it.
 */
export interface AgentSigner {
  /** null: this process has no receipt key that is valid now. */
  current(): PublishedKey | null;
  /** Those that verify what was signed a moment ago or will be signed soon. */
  published(): readonly AgentKeyRecord[];
}

/** `x`: public key, 32 bytes, base64url. */
export type PublishedKey = SigningKey & { readonly x: string };

/** Unix seconds; `notAfter` null: not retired. */
export type AgentKeyRecord = {
  readonly key: PublishedKey;
  readonly notBefore: number;
  readonly notAfter: number | null;
};

export interface CheckpointSigner {
  /** null: this process has no checkpoint key that is valid now. */
  current(): CheckpointKey | null;
  /**
   * Keys that this one has replaced, the newest first, none of them compromised: they sign the same checkpoints, so that
   * witnesses which do not know it yet cosign. `isAccepted`: every witness knows it.
   */
  replacedBy(keyId: string, isAccepted: boolean): readonly CheckpointKey[];
}

/** A key of a witness. `sign`: by the algorithm of the key's type (C2SP tlog-cosignature). */
export type CosignerSigner = {
  readonly key: CosignerKey;
  readonly sign: (message: Uint8Array) => Promise<Uint8Array>;
};

export interface KeyedHash {
  /** HMAC-SHA-256 of UTF-8 `label`, a zero byte and UTF-8 `text`: 32 bytes. Each use has its own label. */
  mac(label: string, text: string): Uint8Array;
}
