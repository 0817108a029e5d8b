// The event log and the chain of an operator's command, as the configuration names them.
import type { operatorChain } from '#src/app/chain.ts';
import type { JournalDeps } from '#src/usecases/event-streams.ts';
import { readConfirmations, readRpcUrl } from '../config.ts';
import { CannotRun } from './exit.ts';
import { withLog } from './operator.ts';

type ChainDeps = JournalDeps & ReturnType<typeof operatorChain>;

/** Runs `work` on the configured event log, which is closed afterwards, and chain. */
export async function withChain<T>(work: (deps: ChainDeps) => Promise<T>): Promise<T> {
  const rpcUrl = readRpcUrl();
  if (rpcUrl === null)
    throw new CannotRun('X402_RPC_URL is not set: it names the node that is queried, as for the service');
  const confirmations = readConfirmations();
  const { operatorChain } = await import('#src/app/chain.ts');
  return withLog((deps) => work({ ...deps, ...operatorChain({ rpcUrl, confirmations }, deps.logger) }));
}
