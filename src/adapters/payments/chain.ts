// Reads from the chain the state of an authorization: unused, paid to us, cancelled, or spent elsewhere.
import {
  encodeEventTopics,
  type Hex,
  type LogTopic,
  numberToHex,
  type PublicClient,
  parseAbi,
  TransactionReceiptNotFoundError,
} from 'viem';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Authorization, Payments } from '#src/ports/payments.ts';
import { NoAnswer, queryNode } from './node.ts';
import { lowerHex } from './requirements.ts';
import { type DataLog, readTransfer, type TransferLog } from './transfer-log.ts';

/** Time limit of a whole look-up. */
const LOOK_UP_MS = 8000;

const AUTHORIZATION_STATE = parseAbi([
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
]);

export function rpcChain(deps: {
  readonly rpcUrl: string;
  readonly logger: Logger;
}): Pick<Payments, 'lookUp'> {
  const { rpcUrl, logger } = deps;
  /** Of the last look-up that failed; null: the last one succeeded. An outage is logged once. */
  let problem: string | null = null;
  return {
    async lookUp(payment, { transaction = null, signal } = {}) {
      try {
        const finding = await queryNode(rpcUrl, { ms: LOOK_UP_MS, signal }, (client) =>
          look(client, payment, transaction),
        );
        problem = null;
        return finding;
      } catch (error) {
        const code = error instanceof NoAnswer ? error.code : 'rpc_failed';
        if (code !== problem && code !== 'stopped') {
          problem = code;
          logger.warn('the chain gave no usable answer about a payment', { code });
        }
        return { outcome: 'unavailable' };
      }
    },
  };
}

/** Reads the receipt of `transaction` first, since it may be all that is needed. Throws `NoAnswer`. */
async function look(
  client: PublicClient,
  payment: Authorization,
  transaction: string | null,
): Promise<ChainFinding> {
  const asset = lowerHex(payment.asset);
  const [chainId, latest, named] = await Promise.all([
    client.getChainId(),
    client.getBlock({ blockTag: 'latest' }),
    transaction === null ? null : transferIn(client, { ...payment, asset }, transaction as Hex),
  ]);
  if (`eip155:${chainId}` !== payment.network) throw new NoAnswer('other_chain');
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
  return findingOf(client, { ...payment, asset, latest });
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
    return await queryNode(rpcUrl, { ms: LOOK_UP_MS, signal: undefined }, async (client) => {
      const [chainId, transfer] = await Promise.all([
        client.getChainId(),
        transferIn(client, search, transaction as Hex),
      ]);
      if (`eip155:${chainId}` !== payment.network) throw new NoAnswer('other_chain');
      return transfer !== null && isToPayee(transfer, payment);
    });
  } catch {
    return null;
  }
}

type Block = { readonly number: bigint; readonly timestamp: bigint };

/** `asset`: lower case. */
type Search = Authorization & { readonly asset: Hex; readonly latest: Block };

async function findingOf(client: PublicClient, search: Search): Promise<ChainFinding> {
  const end = await findEnd(client, search);
  if (end === null) throw new NoAnswer('log_not_found');
  if (end.kind === 'cancelled') return { outcome: 'cancelled' };
  const transfer = await transferIn(client, search, end.transaction);
  if (transfer === null) throw new NoAnswer('transfer_not_found');
  return isToPayee(transfer, search)
    ? { outcome: 'paid', transaction: end.transaction }
    : { outcome: 'spent_elsewhere' };
}

const isToPayee = ({ to, value }: TransferLog, { payTo, amount }: Authorization): boolean =>
  to === payTo && value === BigInt(amount);

type End = { readonly kind: 'used' | 'cancelled'; readonly transaction: Hex };

/** An authorization is used before it expires, and signed at most this long before that. */
const LIFETIME_SECONDS = 900n;
const RANGE_BLOCKS = 2000n;
/** Limits the search: a cancellation may follow at any later time. */
const MAX_RANGES = 60;

const USED = parseAbi(['event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)']);
const CANCELLED = parseAbi([
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
]);

/** null: not in the searched blocks. Reads small ranges, since public nodes limit the blocks of one request. */
async function findEnd(client: PublicClient, search: Search): Promise<End | null> {
  const { latest } = search;
  let from = await blockBefore(client, BigInt(search.validBefore) - LIFETIME_SECONDS, latest);
  for (let range = 0; range < MAX_RANGES && from <= latest.number; range++) {
    const last = from + RANGE_BLOCKS - 1n;
    const to = last < latest.number ? last : latest.number;
    const end = await endIn(client, search, from, to);
    if (end !== null) return end;
    from = to + 1n;
  }
  return null;
}

/** Topics of the logs that end an authorization: event, payer, nonce. */
function topicsOf({ payer, nonce }: Pick<Search, 'payer' | 'nonce'>) {
  const args = { authorizer: payer as Hex, nonce: nonce as Hex };
  return {
    used: encodeEventTopics({ abi: USED, args }),
    cancelled: encodeEventTopics({ abi: CANCELLED, args }),
  };
}

/** Checks the node's filter: some nodes filter loosely, and this decides whether we were paid. */
const isLog = (log: Pick<DataLog, 'address' | 'topics'>, asset: Hex, topics: readonly unknown[]): boolean =>
  lowerHex(log.address) === asset &&
  log.topics.length === topics.length &&
  log.topics.every((topic, index) => lowerHex(topic) === topics[index]);

async function endIn(client: PublicClient, search: Search, from: bigint, to: bigint): Promise<End | null> {
  const { asset } = search;
  const { used, cancelled } = topicsOf(search);
  const logs = await client.request({
    method: 'eth_getLogs',
    params: [
      {
        address: asset,
        topics: [[used[0], cancelled[0]], used[1], used[2]] as LogTopic[],
        fromBlock: numberToHex(from),
        toBlock: numberToHex(to),
      },
    ],
  });
  for (const log of logs) {
    if (log.removed === true || log.transactionHash === null) continue;
    const transaction = lowerHex(log.transactionHash);
    if (isLog(log, asset, used)) return { kind: 'used', transaction };
    if (isLog(log, asset, cancelled)) return { kind: 'cancelled', transaction };
  }
  return null;
}

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
  const logs = await logsOf(client, transaction);
  const at = logs.findIndex((log) => isLog(log, asset, topicsOf(search).used));
  const log = at < 0 ? undefined : logs[at + 1];
  const transfer = log === undefined ? null : readTransfer(log);
  return transfer?.asset === asset && transfer.from === payer ? transfer : null;
}

/** Empty if the transaction is not in a block. */
async function logsOf(client: PublicClient, hash: Hex): Promise<readonly DataLog[]> {
  try {
    return (await client.getTransactionReceipt({ hash })).logs;
  } catch (error) {
    if (error instanceof TransactionReceiptNotFoundError) return [];
    throw error;
  }
}

/** A block at or before `time` (Unix seconds), at most one range before it: doubling steps back, then binary search. */
export async function blockBefore(client: PublicClient, time: bigint, latest: Block): Promise<bigint> {
  const timeOf = async (blockNumber: bigint) => (await client.getBlock({ blockNumber })).timestamp;
  let after = latest.number;
  let step = 512n;
  let before = after > step ? after - step : 0n;
  while (before > 0n && (await timeOf(before)) > time) {
    after = before;
    step *= 2n;
    before = before > step ? before - step : 0n;
  }
  while (after - before > RANGE_BLOCKS / 2n) {
    const middle = (before + after) / 2n;
    if ((await timeOf(middle)) > time) after = middle;
    else before = middle;
  }
  return before;
}
