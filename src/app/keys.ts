// The signing keys of this process: the key file, their announcement in the event log, and what signs and hashes with them.
import { rememberingVerify } from '#src/adapters/signing/ed25519.ts';
import { hmacKeyedHash } from '#src/adapters/signing/hash.ts';
import { keyFileStore, openKeyFile } from '#src/adapters/signing/key-file.ts';
import type { Config } from '#src/config.ts';
import type { Primitives } from '#src/domain/receipt/report.ts';
import { type HeldKey, type KeyRecord, lastingKeys } from '#src/domain/signing-keys/keys.ts';
import type { KeyStoreContent } from '#src/ports/key-store.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { JournalDeps } from '#src/usecases/event-streams.ts';
import { activeKeys } from '#src/usecases/signing-keys/active-keys.ts';
import { activateSigningKeys, keyDirectory } from '#src/usecases/signing-keys/key-ring.ts';

export type Keys = Awaited<ReturnType<typeof wireKeys>>;

/** For the verifier in the service and on the command line. */
export const verifierPrimitives: Primitives = { ed25519Verify: rememberingVerify() };

/**
 * Follows rotations until `ending` aborts; `watching` resolves then. Throws `KeyFileError`, `KeyMismatch` or
 * `LogTakesNothing`: the process must not start.
 */
export async function wireKeys(
  config: Pick<Config, 'keyFile'>,
  journal: JournalDeps & { readonly ending: AbortSignal },
) {
  const { hmacSecret } = openKeyFile(config.keyFile);
  const store = keyFileStore(config.keyFile.path);
  const content = store.read();
  const { keys: announced } = await activateSigningKeys(journal, content);
  warnOfCheckpoints(content, announced, journal.logger);
  const directory = keyDirectory(journal, announced);
  const { clock, logger } = journal;
  const own = activeKeys({ store, directory, clock, logger }, content);
  return {
    signer: own.signer,
    checkpointSigner: own.checkpointSigner,
    health: own.health,
    keyedHash: hmacKeyedHash(hmacSecret),
    directory,
    /** Those of the event log and those of the key file: a restored log may lack the newest. */
    checkpointKeys: () => [...directory.list(), ...content.keys.flatMap(checkpointRecord)],
    watching: own.watch(journal.ending),
  };
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
