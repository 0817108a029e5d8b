// Reads the transfers of blocks with a second witness: what the payee has. A node may leave a transfer out of its answer, or
// answer for blocks that it does not have, so that transfers count only if the payee's balance has changed by as much.
import { accountKey, type ChainAccount, type ChainBlock } from '#src/domain/payment/reconciliation.ts';
import type { ChainScan, Scan, ScanRequest } from '#src/ports/chain-scan.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';

/** `units`: by how much the payee's balance has changed more than the transfers of the blocks say. Atomic units. */
export type BooksDifference = {
  readonly fromBlock: number;
  readonly toBlock: number;
  readonly units: bigint;
};

type Read = { readonly scanned: Scan; readonly upTo: ChainBlock };

export type BlocksRead =
  | ({ readonly kind: 'agrees' } & Read)
  /** The transfers are on the chain; others may be, too. */
  | ({ readonly kind: 'differs'; readonly difference: BooksDifference } & Read)
  /** The chain was reorganised meanwhile, or its nodes have different blocks. */
  | { readonly kind: 'reorganised' };

export type BlocksRequest = ScanRequest & {
  readonly account: ChainAccount;
  /** The newest block that counts. */
  readonly head: ChainBlock;
  readonly signal: AbortSignalLike;
};

/** Of one process. */
export type BalanceMemory = {
  /** What the payee had after the last block that was compared, by account: a node may keep no state that old. */
  readonly last: Map<string, { readonly block: number; readonly hash: string; readonly amount: bigint }>;
  /** Reads that differed since the last one that did not: the next ones begin at other blocks. */
  differed: number;
  /** It was logged that the node keeps no state. */
  isLogged: boolean;
};

export const noBalances = (): BalanceMemory => ({ last: new Map(), differed: 0, isLogged: false });

type Deps = { readonly scan: ChainScan; readonly logger: Pick<Logger, 'warn'> };

/** Blocks before the first one at which the reads of blocks that differ begin: a cache of answers has not seen these. */
const startsOf = ({ differed }: BalanceMemory): readonly number[] => [0, 1 + differed, 97 + differed];

/** Reads again, from other blocks on, if the balance differs. Throws `ChainUnavailable`. */
export async function readBlocks(
  deps: Deps,
  memory: BalanceMemory,
  request: BlocksRequest,
): Promise<BlocksRead> {
  const { from } = request;
  let last: BlocksRead = { kind: 'reorganised' };
  for (const before of startsOf(memory)) {
    const whole = await deps.scan.scan({ ...request, from: Math.max(0, from - before) }, request.signal);
    if (whole.to < from) continue;
    last = await compared(deps, memory, request, {
      ...whole,
      transfers: whole.transfers.filter(({ block }) => block >= from),
      sent: whole.sent.filter(({ block }) => block >= from),
    });
    if (last.kind !== 'differs' || request.signal.aborted) break;
  }
  memory.differed = last.kind === 'differs' ? memory.differed + 1 : 0;
  return last;
}

async function compared(
  deps: Deps,
  memory: BalanceMemory,
  request: BlocksRequest,
  scanned: Scan,
): Promise<BlocksRead> {
  const { account, from, head, signal } = request;
  const units = await unexplained(deps, memory, request, scanned);
  const { scan } = deps;
  const upTo = scanned.to === head.number ? head : await scan.block(scanned.to, signal);
  const now = await scan.block(head.number, signal);
  if (upTo === null || upTo.hash !== scanned.hash || now?.hash !== head.hash) return { kind: 'reorganised' };
  if (units.difference !== 0n) {
    const difference = { fromBlock: from, toBlock: scanned.to, units: units.difference };
    return { kind: 'differs', scanned, upTo, difference };
  }
  const { after } = units;
  if (after !== null)
    memory.last.set(accountKey(account), { block: upTo.number, hash: upTo.hash, amount: after });
  return { kind: 'agrees', scanned, upTo };
}

/** `after`: what the payee has after the blocks. null: the node keeps no state of the block, so that nothing is compared. */
async function unexplained(
  deps: Deps,
  memory: BalanceMemory,
  { account, from, signal }: BlocksRequest,
  scanned: Scan,
): Promise<{ readonly difference: bigint; readonly after: bigint | null }> {
  const { scan, logger } = deps;
  const after = await balanceAt(scan, account, scanned.to, signal);
  const before =
    from === 0
      ? 0n
      : ((await balanceAt(scan, account, from - 1, signal)) ??
        (await remembered(scan, memory, account, from - 1, signal)));
  if (after === null && !memory.isLogged) {
    memory.isLogged = true;
    const message =
      'the node of X402_RPC_URL keeps no state of older blocks: transfers are not compared with the balance of X402_PAY_TO';
    logger.warn(message, { block: scanned.to });
  }
  if (after === null || before === null) return { difference: 0n, after };
  const received = scanned.transfers.reduce((sum, { amount }) => sum + amount, 0n);
  const sent = scanned.sent.reduce((sum, { amount }) => sum + amount, 0n);
  return { difference: after - before - (received - sent), after };
}

async function balanceAt(
  scan: ChainScan,
  { payee }: ChainAccount,
  block: number,
  signal: AbortSignalLike,
): Promise<bigint | null> {
  const balance = await scan.balanceOf(payee, block, signal);
  return balance.kind === 'known' ? balance.amount : null;
}

/** null: another block was the last one, or it is no longer in the chain. */
async function remembered(
  scan: ChainScan,
  { last }: BalanceMemory,
  account: ChainAccount,
  number: number,
  signal: AbortSignalLike,
): Promise<bigint | null> {
  const known = last.get(accountKey(account));
  if (known?.block !== number) return null;
  return (await scan.block(number, signal))?.hash === known.hash ? known.amount : null;
}
