// The signing keys of this process: the key file, their announcement in the event log, and what signs and hashes with them.
import { existsSync } from 'node:fs';
import { rememberingVerify } from '#src/adapters/signing/ed25519.ts';
import { hmacKeyedHash } from '#src/adapters/signing/hash.ts';
import { keyFileStore, openKeyFile } from '#src/adapters/signing/key-file.ts';
import { KeyFileError } from '#src/adapters/signing/owners-file.ts';
import type { Config } from '#src/config.ts';
import { type HeldKey, type KeyRecord, lastingKeys, type Primitives } from '#src/domain/signing-keys/keys.ts';
import { mlDsa44Verify } from '#src/lib/ml-dsa.ts';
import type { KeyStoreContent } from '#src/ports/key-store.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { JournalDeps } from '#src/usecases/process/stream.ts';
import { activeKeys } from '#src/usecases/signing-keys/active-keys.ts';
import {
  activateSigningKeys,
  KeyMismatch,
  keyDirectory,
  loadKeyRing,
} from '#src/usecases/signing-keys/key-ring.ts';
import type { LogHistory } from './log-history.ts';

export type Keys = Awaited<ReturnType<typeof wireKeys>>;

/** For the verifier in the service and on the command line. */
export const verifierPrimitives: Primitives = { ed25519Verify: rememberingVerify(), mlDsa44Verify };

/**
 * Follows rotations until `ending` aborts; `watching` resolves then. `history` remembers which log has announced the keys.
 * Throws `KeyFileError`, `KeyMismatch` or `LogTakesNothing`: the process must not start.
 */
export async function wireKeys(
  { keyFile }: Pick<Config, 'keyFile'>,
  journal: JournalDeps & { readonly ending: AbortSignal },
  history: Pick<LogHistory, 'earlierKeys' | 'remember'>,
) {
  const { clock, logger } = journal;
  if (keyFile.create && (await loadKeyRing(journal)).logId !== null) demandKeyFile(keyFile.path);
  const { hmacSecret } = openKeyFile(keyFile);
  const store = keyFileStore(keyFile.path);
  const content = store.read();
  const { logId, keys: announced } = await activateSigningKeys(journal, content, history.earlierKeys()).catch(
    (error: unknown) => {
      throw error instanceof KeyMismatch ? new KeyMismatch(`${keyFile.path}: ${error.message}`) : error;
    },
  );
  const remember = (keys: readonly KeyRecord[]) => logId !== null && history.remember(logId, keys, journal);
  remember(announced);
  warnOfCheckpoints(content, announced, logger);
  const directory = keyDirectory(journal, announced, remember);
  const own = activeKeys({ store, directory, clock, logger }, content);
  return {
    logId,
    signer: own.signer,
    checkpointSigner: own.checkpointSigner,
    agentSigner: own.agentSigner,
    health: own.health,
    keyedHash: hmacKeyedHash(hmacSecret),
    directory,
    /** Those of the event log and those of the key file: a restored log may lack the newest. */
    checkpointKeys: () => [...directory.list(), ...content.keys.flatMap(checkpointRecord)],
    watching: own.watch(journal.ending),
  };
}

/** A key file that is made beside a log with keys would not match it. */
function demandKeyFile(path: string): void {
  if (existsSync(path)) return;
  const problem = 'is not there, and the event log was written with one: put it back from its backup';
  throw new KeyFileError('key_file_missing', path, problem);
}

const checkpointRecord = ({ keyId, purpose, x }: HeldKey): KeyRecord[] =>
  purpose === 'checkpoint' ? [{ keyId, purpose, x, notBefore: 0, notAfter: null, compromisedAt: null }] : [];

function warnOfCheckpoints({ keys }: KeyStoreContent, announced: readonly KeyRecord[], logger: Logger): void {
  if (lastingKeys(keys, announced, 'checkpoint').length > 0) return;
  const why = keys.some(({ purpose }) => purpose === 'checkpoint')
    ? 'the checkpoint key of the key file is retired, or not known to the event log'
    : 'the key file has no checkpoint key';
  logger.warn(
    `${why}: this process keeps no transparency log; \`relay keys rotate --purpose checkpoint\` adds a key`,
  );
}
