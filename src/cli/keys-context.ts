// What the commands about keys have in common: the log and the key file that the configuration names.
import { readConfig } from '#src/config.ts';
import type { ChangeKeysDeps } from '#src/usecases/signing-keys/change-keys.ts';
import { LogTakesNothing } from '#src/usecases/signing-keys/key-ring.ts';
import { CannotRun } from './exit.ts';

export type Office = ChangeKeysDeps & { readonly path: string };

export async function withKeys<T>(work: (office: Office) => Promise<T>): Promise<T> {
  const config = readConfig();
  const { openKeyOffice } = await import('#src/app/operator-keys.ts');
  const office = await openKeyOffice(config);
  try {
    return await work({ ...office, path: config.keyFile.path });
  } catch (cause) {
    if (!(cause instanceof LogTakesNothing)) throw cause;
    throw new CannotRun('the event log takes no events: run this again when it does; nothing is done twice', {
      cause,
    });
  } finally {
    await office.log.close();
  }
}

/** To the minute, for a person. */
export const told = (instant: string): string => `${instant.slice(0, 16).replace('T', ' ')} UTC`;

/** To the second, for a person: on which side of it something was signed decides whether it counts. */
export const toldExactly = (instant: string): string => `${instant.slice(0, 19).replace('T', ' ')} UTC`;
