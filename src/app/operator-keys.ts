// Log and key file for an operator's command about keys, beside whatever service uses them.
import { keyFileStore } from '#src/adapters/signing/key-file.ts';
import type { Config } from '#src/config.ts';
import type { ChangeKeysDeps } from '#src/usecases/signing-keys/change-keys.ts';
import { openOperatorLog } from './operator-log.ts';

/** Throws as `openOperatorLog` does. `log.close` is the caller's. */
export const openKeyOffice = async (config: Config): Promise<ChangeKeysDeps> => ({
  ...(await openOperatorLog(config)),
  store: keyFileStore(config.keyFile.path),
});
