// Reads from the chain the state of an authorization: unused, paid to us, cancelled, or spent elsewhere.
import { type Hex, type PublicClient, pad, parseAbi } from 'viem';
import { LIMITS } from '#src/domain/limits.ts';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import { RUN_TIMES, SCHEDULE_LIMITS } from '#src/domain/schedule/limits.ts';
import { withTimeout } from '#src/lib/time.ts';
import type { AbortSignalLike } from '#src/ports/event-log.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Authorization, Payments } from '#src/ports/payments.ts';
import { type Block, blockBefore } from './chain-blocks.ts';
import {
  CANCELLED,
  LARGEST_RANGE,
  type RangeSizes,
  rangeSizes,
  readLogs,
  readRanges,
  USED,
} from './chain-logs.ts';
import { demandNetwork, findReceipt, NoAnswer, queryNode } from './node.ts';
import { lowerHex } from './requirements.ts';
import { type DataLog, readTransfer, type TransferLog } from './transfer-log.ts';

const LOOK_UP_MS = 8000;
/** Of one range of logs: one that takes longer is divided, which the look-up must have time for. */
const RANGE_MS = 2500;

const AUTHORIZATION_STATE = parseAbi([
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
]);
const BALANCE = parseAbi(['function balanceOf(address account) view returns (uint256)']);

export function rpcChain(deps: {
  readonly rpcUrl: string;
  readonly logger: Logger;
}): Pick<Payments, 'lookUp' | 'balanceOf'> {
  const { rpcUrl, logger } = deps;
  const sizes = rangeSizes(LARGEST_RANGE);
  const noteProblem = (error: unknown) => {
    const code = error instanceof NoAnswer ? error.code : 'rpc_failed';
    if (code !== 'stopped') logger.condition('chainLookUps', 'no_answer', { code });
  };
  return {
    async balanceOf({ network, asset, payer }) {
      try {
        return await queryNode(rpcUrl, { ms: LOOK_UP_MS }, async (client) => {
          const call = { address: lowerHex(asset), abi: BALANCE, functionName: 'balanceOf' } as const;
          const asked = client.readContract({ ...call, args: [payer as Hex] });
          const [, balance] = await Promise.all([demandNetwork(client, network), asked]);
          return balance;
        });
      } catch (error) {
        noteProblem(error);
        return null;
      }
    },
    async lookUp(payment, { transaction = null, signal } = {}) {
      try {
        const finding = await lookUpOnce(rpcUrl, { payment, transaction, sizes, signal });
        logger.condition('chainLookUps', null);
        return finding;
      } catch (error) {
        noteProblem(error);
        return { outcome: 'unavailable' };
      }
    },
  };
}

/** Bounded in time. Throws `NoAnswer`. */
export const lookUpOnce = (
  rpcUrl: string,
  look: {
    readonly payment: Authorization;
    readonly transaction: string | null;
    readonly sizes: RangeSizes;
    readonly signal?: AbortSignalLike | undefined;
  },
): Promise<ChainFinding> =>
  queryNode(rpcUrl, { ms: LOOK_UP_MS, signal: look.signal }, (client, isOver) =>
    findingOf({ client, sizes: look.sizes, isOver }, look),
  );

/** The client of one look-up. `sizes`: of the ranges of logs that the node accepts. */
type Node = { readonly client: PublicClient; readonly sizes: RangeSizes; readonly isOver: () => boolean };

/** Reads the receipt of `transaction` first, since it may be all that is needed. Throws `NoAnswer`. */
async function findingOf(
  node: Node,
  { payment, transaction }: { readonly payment: Authorization; readonly transaction: string | null },
): Promise<ChainFinding> {
  const { client } = node;
  const asset = lowerHex(payment.asset);
  const [, latest, named] = await Promise.all([
    demandNetwork(client, payment.network),
    client.getBlock({ blockTag: 'latest' }),
    transaction === null ? null : transferIn(client, { ...payment, asset }, transaction as Hex),
  ]);
  if (named !== null && isToPayee(named, payment)) {
    return { outcome: 'paid', transaction: lowerHex(transaction ?? '') };
  }
  const used = await client.readContract({
    address: asset,
    abi: AUTHORIZATION_STATE,
    functionName: 'authorizationState',
    args: [payment.payer as Hex, payment.nonce as Hex],
    blockNumber: latest.number,
  });
  if (!used) return { outcome: 'unused', chainTimeSeconds: Number(latest.timestamp) };
  return endOf(node, { ...payment, asset, latest });
}

/**
 * Whether the transaction contains the transfer of this authorization to the payee; null: the node gave no usable answer.
 * Bounded in time, never throws.
 */
export async function isSettledBy(
  rpcUrl: string,
  payment: Authorization,
  transaction: string,
): Promise<boolean | null> {
  const search = { ...payment, asset: lowerHex(payment.asset) };
  try {
    return await queryNode(rpcUrl, { ms: LOOK_UP_MS }, async (client) => {
      const [, transfer] = await Promise.all([
        demandNetwork(client, payment.network),
        transferIn(client, search, transaction as Hex),
      ]);
      return transfer !== null && isToPayee(transfer, payment);
    });
  } catch {
    return null;
  }
}

/** `asset`: lower case. */
type Search = Authorization & { readonly asset: Hex; readonly latest: Pick<Block, 'number'> };

async function endOf(node: Node, search: Search): Promise<ChainFinding> {
  const end = await findEnd(node, search);
  if (end === null) throw new NoAnswer('log_not_found');
  if (end.kind === 'cancelled') return { outcome: 'cancelled' };
  const transfer = await transferIn(node.client, search, end.transaction);
  if (transfer === null) throw new NoAnswer('transfer_not_found');
  return isToPayee(transfer, search)
    ? { outcome: 'paid', transaction: end.transaction }
    : { outcome: 'spent_elsewhere' };
}

const isToPayee = ({ to, value }: TransferLog, { payTo, amount }: Authorization): boolean =>
  to === payTo && value === BigInt(amount);

type End = { readonly kind: 'used' | 'cancelled'; readonly transaction: Hex };

/** Clocks differ: that of the process which reserved the payment may have been ahead of the chain by this. */
const CLOCKS_SECONDS = 600;
/** The authorization of a call is used before it expires, and signed at most this long before that. */
const LIFETIME_SECONDS = LIMITS.authorizationSeconds.max + CLOCKS_SECONDS;
/** That of a run is signed long before, and used at most this long before it expires. */
const RUN_SECONDS =
  LIFETIME_SECONDS + SCHEDULE_LIMITS.catchUpSeconds.max + RUN_TIMES.authorizationMarginSeconds;
/** Limits the search: a cancellation may follow at any later time. */
const MAX_BLOCKS = 120_000;

/** Unix seconds, before which the relay cannot have settled it. */
function earliestUse({ validBefore, reservedAt }: Authorization): number {
  const latest = Number(validBefore) - LIFETIME_SECONDS;
  if (reservedAt === undefined) return latest;
  const reserved = Math.floor(Date.parse(reservedAt) / 1000) - CLOCKS_SECONDS;
  return Math.min(latest, Math.max(reserved, Number(validBefore) - RUN_SECONDS));
}

/** null: not in the searched blocks. */
async function findEnd({ client, sizes, isOver }: Node, search: Search): Promise<End | null> {
  const { asset, latest } = search;
  const { used, nonce, payer } = topicsOf(search);
  const filter = { asset, topics: [[used, CANCELLED], [payer], [nonce]] } as const;
  // As precise as the ranges are large: with small ones, each block before the search costs more calls than its time.
  const since = BigInt(earliestUse(search));
  const from = Number(await blockBefore(client, since, latest, Math.floor(sizes.size() / 2)));
  const to = Math.min(Number(latest.number), from + MAX_BLOCKS - 1);
  let end: End | null = null;
  await readRanges({ from, to }, sizes, {
    async read(range) {
      const logs = await withTimeout(
        readLogs(client, filter, range),
        RANGE_MS,
        () => new NoAnswer('timeout'),
      );
      const [log] = logs;
      if (log !== undefined) {
        const kind = log.topics[0] === used ? 'used' : 'cancelled';
        end = { kind, transaction: lowerHex(log.transaction) };
      }
      return logs.length;
    },
    isDone: () => end !== null,
    mayDivide: () => !isOver(),
  });
  return end;
}

/** Topics of the log that uses an authorization. */
const topicsOf = ({ payer, nonce }: Pick<Search, 'payer' | 'nonce'>) => ({
  used: USED,
  payer: pad(lowerHex(payer)),
  nonce: lowerHex(nonce),
});

/**
 * The payer's transfer right after the use of the authorization in this transaction: USDC writes the two logs in this order.
 * null if the transaction is not in a block, or if the logs are missing or in another order, as other tokens may write them:
 * then the recipient is unknown.
 */
async function transferIn(
  client: PublicClient,
  search: Pick<Search, 'asset' | 'payer' | 'nonce'>,
  transaction: Hex,
): Promise<TransferLog | null> {
  const { asset, payer } = search;
  const logs = (await findReceipt(client, transaction))?.logs ?? [];
  const use = Object.values(topicsOf(search));
  const at = logs.findIndex((log) => isLog(log, asset, use));
  const log = at < 0 ? undefined : logs[at + 1];
  const transfer = log === undefined ? null : readTransfer(log);
  return transfer?.asset === asset && transfer.from === payer ? transfer : null;
}

const isLog = (log: DataLog, asset: Hex, topics: readonly Hex[]): boolean =>
  lowerHex(log.address) === asset &&
  log.topics.length === topics.length &&
  log.topics.every((topic, index) => lowerHex(topic) === topics[index]);
