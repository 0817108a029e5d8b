// The event log, the keys and the chain of an operator's command, as the configuration names them, opened and closed.
import type { operatorChain } from '#src/app/chain.ts';
import type { OperatorLog } from '#src/app/operator.ts';
import { readConfig, readLogConfig, readVariable } from '#src/config.ts';
import type { JournalDeps } from '#src/usecases/process/stream.ts';
import type { ChangeKeysDeps } from '#src/usecases/signing-keys/change-keys.ts';
import { LogTakesNothing } from '#src/usecases/signing-keys/key-ring.ts';
import { CannotRun } from './exit.ts';

/** Runs `work` on the configured event log, which is closed afterwards. */
export async function withLog<T>(work: (deps: OperatorLog) => Promise<T>): Promise<T> {
  const config = readLogConfig();
  const { openOperatorLog } = await import('#src/app/operator.ts');
  return closing(await openOperatorLog(config), work);
}

async function closing<D extends JournalDeps, T>(deps: D, work: (deps: D) => Promise<T>): Promise<T> {
  try {
    return await work(deps);
  } finally {
    await deps.log.close();
  }
}

/** Runs `work` on the configured event log and key file (`path`). */
export async function withKeys<T>(
  work: (deps: ChangeKeysDeps & { readonly path: string }) => Promise<T>,
): Promise<T> {
  const config = readConfig();
  const { openOperatorKeys } = await import('#src/app/operator.ts');
  const deps = { ...(await openOperatorKeys(config)), path: config.keyFile.path };
  return closing(deps, work).catch((cause: unknown) => {
    if (!(cause instanceof LogTakesNothing)) throw cause;
    const message =
      'the event log accepts no events: run the command again when it does; nothing is done twice';
    throw new CannotRun(message, { cause });
  });
}

/**
 * Share of the log up to `position`, 0 to 1; null if unknown. For progress only: positions are opaque, but in both event
 * logs they begin with a growing number.
 */
export function shareOf(position: string | null, head: string | null): number | null {
  const [at, end] = [position, head].map((text) => Number(/^\d+/.exec(text ?? '')?.[0] ?? Number.NaN));
  if (at === undefined || end === undefined || !(end > 0) || !(at <= end)) return null;
  return at / end;
}

type ChainDeps = JournalDeps & ReturnType<typeof operatorChain>;

/** Runs `work` on the configured event log, which is closed afterwards, and chain. */
export async function withChain<T>(work: (deps: ChainDeps) => Promise<T>): Promise<T> {
  const rpcUrl = readVariable('X402_RPC_URL');
  if (rpcUrl === null)
    throw new CannotRun('X402_RPC_URL is not set: it names the node that is queried, as for the service');
  const confirmations = readVariable('X402_CONFIRMATIONS');
  const { operatorChain } = await import('#src/app/chain.ts');
  return withLog((deps) => work({ ...deps, ...operatorChain({ rpcUrl, confirmations }, deps.logger) }));
}
