// The signing keys of this process: the key file, the log's word on it, and what signs and hashes with it.
import { ed25519Verify } from '#src/adapters/signing/ed25519.ts';
import { hmacKeyedHash } from '#src/adapters/signing/hash.ts';
import { openKeyFile, updateKeyFile } from '#src/adapters/signing/key-file.ts';
import { KeyFileError } from '#src/adapters/signing/key-file-error.ts';
import { keyFileStore } from '#src/adapters/signing/key-store.ts';
import type { Config } from '#src/config.ts';
import type { Primitives } from '#src/domain/receipt/verify.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { type HeldKey, lastingKeys } from '#src/domain/signing-keys/local-keys.ts';
import type { KeyStoreContent } from '#src/ports/key-store.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { CheckpointSigner, KeyedHash, Signer } from '#src/ports/signer.ts';
import type { JournalDeps } from '#src/usecases/event-streams.ts';
import { ownKeys } from '#src/usecases/signing-keys/active-keys.ts';
import { activateSigningKeys } from '#src/usecases/signing-keys/announce-keys.ts';
import {
  type KeyDirectory,
  type KeysAtHand,
  keyDirectory,
} from '#src/usecases/signing-keys/key-directory.ts';

export type Keys = {
  readonly signer: Signer;
  readonly checkpointSigner: CheckpointSigner;
  readonly keyedHash: KeyedHash;
  readonly directory: KeyDirectory & KeysAtHand;
  /** Those of the log and those of the key file, which a restored log may not know. */
  readonly checkpointKeys: () => Promise<readonly KeyRecord[]>;
};

/** What the one verifier works with, wherever it runs on this side of the wire. */
export const verifierPrimitives: Primitives = { ed25519Verify };

/**
 * Follows rotations until `ending` aborts; `watching` resolves then. Throws `KeyFileError`, `KeyMismatch` or
 * `LogTakesNothing`: then the process must not start.
 */
export async function wireKeys(
  config: Pick<Config, 'keyFile'>,
  journal: JournalDeps & { readonly ending: AbortSignal },
): Promise<Keys & { readonly watching: Promise<void> }> {
  const { path, create } = config.keyFile;
  const { hmacSecret, keys } = openKeyFile(config.keyFile);
  // Ours, and from before there were checkpoints. One that somebody named is theirs to change.
  if (create && !hasCheckpointKey(keys)) addCheckpointKey(path);
  const store = keyFileStore(path);
  const content = store.read();
  const { keys: announced } = await activateSigningKeys(journal, content);
  warnOfCheckpoints(content, announced, journal.logger);
  const directory = keyDirectory(journal, announced);
  const { clock, logger } = journal;
  const own = ownKeys({ store, directory, clock, logger }, { content, announced });
  return {
    signer: own.signer,
    checkpointSigner: own.checkpointSigner,
    keyedHash: hmacKeyedHash(hmacSecret),
    directory,
    checkpointKeys: async () => [...(await directory.list()), ...content.keys.flatMap(checkpointRecord)],
    watching: own.watch(journal.ending),
  };
}

/** A file that may only be read serves on as it did: without a transparency log, which is told below. */
function addCheckpointKey(path: string): void {
  try {
    updateKeyFile(path, ({ keys }) => (hasCheckpointKey(keys) ? null : FRESH_CHECKPOINT_KEY));
  } catch (error) {
    if (!(error instanceof KeyFileError) || error.code !== 'key_file_unusable') throw error;
  }
}

const FRESH_CHECKPOINT_KEY = { fresh: ['checkpoint'], retired: [] };

const hasCheckpointKey = (keys: readonly { readonly purpose: string }[]): boolean =>
  keys.some(({ purpose }) => purpose === 'checkpoint');

const checkpointRecord = ({ keyId, purpose, x }: HeldKey): KeyRecord[] =>
  purpose === 'checkpoint' ? [{ keyId, purpose, x, notBefore: 0, notAfter: null, compromisedAt: null }] : [];

function warnOfCheckpoints({ keys }: KeyStoreContent, announced: readonly KeyRecord[], logger: Logger): void {
  if (lastingKeys(keys, announced, 'checkpoint').length > 0) return;
  const why = hasCheckpointKey(keys)
    ? 'the checkpoint key of the key file is retired, or not known to the event log'
    : 'the key file has no checkpoint key';
  logger.warn(
    `${why}: this process keeps no transparency log; \`relay keys rotate --purpose checkpoint\` adds a key`,
  );
}
