// The signing keys of this process: the key file, the log's word on it, and what signs and hashes with it.
import { ed25519SigningKey, ed25519Verify, firstActiveKey } from '../adapters/signing/ed25519.ts';
import { hmacKeyedHash, secretCheck, sha256, sha256Digest } from '../adapters/signing/hash.ts';
import { openKeyFile } from '../adapters/signing/key-file.ts';
import type { Config } from '../config.ts';
import type { Primitives } from '../domain/receipt/verify.ts';
import type { CheckpointSigner, Digest, KeyedHash, Signer } from '../ports/signer.ts';
import type { JournalDeps } from '../usecases/journal.ts';
import { type KeyDirectory, keyDirectory } from '../usecases/key-directory.ts';
import { activateSigningKey } from '../usecases/signing-keys.ts';

export type Keys = {
  readonly signer: Signer;
  readonly checkpointSigner: CheckpointSigner;
  readonly keyedHash: KeyedHash;
  readonly digest: Digest;
  readonly directory: KeyDirectory;
};

/** What the one verifier works with, wherever it runs on this side of the wire. */
export const verifierPrimitives: Primitives = { sha256, ed25519Verify };

/** Throws `KeyFileError`, `KeyMismatch` or `LogTakesNothing`: then the process must not start. */
export async function wireKeys(config: Config, journal: JournalDeps): Promise<Keys> {
  const file = openKeyFile(config.keyFile);
  const key = firstActiveKey(file.keys, 'receipt');
  if (key === null) throw new Error(`key file ${config.keyFile.path} has no active receipt key`);
  const { keyId, x } = key;
  const ring = await activateSigningKey(journal, { keyId, x, secretCheck: secretCheck(file.hmacSecret) });
  return {
    signer: { current: () => ed25519SigningKey(key), former: () => ed25519SigningKey(key) },
    checkpointSigner: { current: () => null },
    keyedHash: hmacKeyedHash(file.hmacSecret),
    digest: sha256Digest(),
    directory: keyDirectory(journal, ring.keys),
  };
}
