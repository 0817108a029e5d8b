// Reads from the chain the state of an authorization (unused, paid to us, cancelled, or spent elsewhere), and the transfer of
// a refund.
import {
  createPublicClient,
  decodeEventLog,
  encodeEventTopics,
  type Hex,
  http,
  type LogTopic,
  numberToHex,
  type PublicClient,
  parseAbi,
  TransactionReceiptNotFoundError,
} from 'viem';
import type { FoundTransfer } from '#src/domain/payment/refund.ts';
import type { ChainFinding } from '#src/domain/payment/state.ts';
import { withTimeout } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { Authorization, Payments } from '#src/ports/payments.ts';
import { lowerHex, type Terms } from './requirements.ts';

/** Time limit of the whole look-up. */
const LOOK_UP_MS = 8000;
const CALL_MS = 4000;

const AUTHORIZATION_STATE = parseAbi([
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
]);

/** `code`: for the log. The library's messages are not logged: they contain the URL, which may contain a secret. */
class NoAnswer extends Error {
  readonly code: string;
  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

const rpcClient = (rpcUrl: string): PublicClient =>
  createPublicClient({ transport: http(rpcUrl, { timeout: CALL_MS, retryCount: 1, retryDelay: 100 }) });

export function rpcChain(deps: {
  readonly terms: Terms;
  readonly rpcUrl: string;
  readonly clock: Clock;
  readonly logger: Logger;
}): Pick<Payments, 'lookUp'> {
  const { terms, rpcUrl, clock, logger } = deps;
  const client = rpcClient(rpcUrl);

  async function look(payment: Authorization): Promise<ChainFinding> {
    const until = clock.monotonic() + LOOK_UP_MS;
    const [chainId, latest] = await Promise.all([
      client.getChainId(),
      client.getBlock({ blockTag: 'latest' }),
    ]);
    if (chainId !== terms.chainId) throw new NoAnswer('other_chain');
    const { asset } = terms;
    const used = await client.readContract({
      address: asset,
      abi: AUTHORIZATION_STATE,
      functionName: 'authorizationState',
      args: [payment.payer as Hex, payment.nonce as Hex],
      blockNumber: latest.number,
    });
    if (!used) return { outcome: 'unused', chainTimeSeconds: Number(latest.timestamp) };
    const hasTimeLeft = () => clock.monotonic() < until;
    return findingOf(client, { ...payment, asset, latest, hasTimeLeft });
  }

  return {
    async lookUp(payment) {
      try {
        return await withTimeout(look(payment), LOOK_UP_MS, () => new NoAnswer('timeout'));
      } catch (error) {
        const code = error instanceof NoAnswer ? error.code : 'rpc_failed';
        logger.warn('the chain gave no usable answer about a payment', { code });
        return { outcome: 'unavailable' };
      }
    },
  };
}

type Block = { readonly number: bigint; readonly timestamp: bigint };

type Search = Authorization & {
  readonly asset: Hex;
  readonly latest: Block;
  /** false: the time limit is reached. */
  readonly hasTimeLeft: () => boolean;
};

async function findingOf(client: PublicClient, search: Search): Promise<ChainFinding> {
  const end = await findEnd(client, search);
  if (end === null) throw new NoAnswer('log_not_found');
  if (end.kind === 'cancelled') return { outcome: 'cancelled' };
  const transfer = await transferAfter(client, search, end);
  if (transfer === null) throw new NoAnswer('transfer_not_found');
  const toUs = transfer.to === search.payTo && transfer.value === BigInt(search.amount);
  return toUs ? { outcome: 'paid', transaction: end.transaction } : { outcome: 'spent_elsewhere' };
}

type End = { readonly kind: 'used' | 'cancelled'; readonly transaction: Hex };

/** Addresses in lower case. */
type Transfer = { readonly from: string; readonly to: string; readonly value: bigint };

/** An authorization is used before it expires, and signed at most this long before that. */
const LIFETIME_SECONDS = 900n;
const RANGE_BLOCKS = 2000n;
/** Limits the search: a cancellation may follow at any later time. */
const MAX_RANGES = 60;

const USED = parseAbi(['event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)']);
const CANCELLED = parseAbi([
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
]);
const TRANSFER = parseAbi(['event Transfer(address indexed from, address indexed to, uint256 value)']);

/** null: not in the searched blocks. Reads small ranges, since public nodes limit the blocks of one request. */
async function findEnd(client: PublicClient, search: Search): Promise<End | null> {
  const { latest, hasTimeLeft } = search;
  let from = await blockBefore(client, BigInt(search.validBefore) - LIFETIME_SECONDS, latest);
  for (let range = 0; range < MAX_RANGES && from <= latest.number && hasTimeLeft(); range++) {
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
 * The payer's transfer right after the use of the authorization in the same transaction: USDC writes the two logs in this
 * order. null if the logs are in another order, as other tokens may write them: then the recipient is unknown.
 */
async function transferAfter(
  client: PublicClient,
  search: Pick<Search, 'asset' | 'payer' | 'nonce'>,
  used: End,
): Promise<Transfer | null> {
  const { asset, payer } = search;
  const { logs } = await client.getTransactionReceipt({ hash: used.transaction });
  const at = logs.findIndex((log) => isLog(log, asset, topicsOf(search).used));
  const log = at < 0 ? undefined : logs[at + 1];
  const transfer = log === undefined ? null : readTransfer(log, asset);
  return transfer?.from === payer ? transfer : null;
}

type DataLog = { readonly address: string; readonly data: Hex; readonly topics: [] | [Hex, ...Hex[]] };

/** null: the log is no transfer of this asset (lower case). */
function readTransfer({ address, data, topics }: DataLog, asset: string): Transfer | null {
  if (lowerHex(address) !== asset) return null;
  try {
    const { from, to, value } = decodeEventLog({ abi: TRANSFER, data, topics }).args;
    return { from: lowerHex(from), to: lowerHex(to), value };
  } catch {
    return null;
  }
}

/** A block at or before `time` (Unix seconds), at most one range before it: doubling steps back, then binary search. */
async function blockBefore(client: PublicClient, time: bigint, latest: Block): Promise<bigint> {
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

type TransferQuery = {
  /** CAIP-2, `eip155:…`. */
  readonly network: string;
  readonly asset: string;
  readonly payer: string;
  readonly transaction: string;
};

/** The amount that a transaction transferred to a payer. Never throws. `unavailable` also if the endpoint serves another chain. */
export async function findTransfer(rpcUrl: string, query: TransferQuery): Promise<FoundTransfer> {
  const client = rpcClient(rpcUrl);
  try {
    if (`eip155:${await client.getChainId()}` !== query.network) return { outcome: 'unavailable' };
    const receipt = await client.getTransactionReceipt({ hash: query.transaction as Hex });
    if (receipt.status !== 'success') return { outcome: 'failed' };
    const { timestamp } = await client.getBlock({ blockNumber: receipt.blockNumber });
    const amount = receipt.logs.reduce((sum, log) => sum + movedToPayer(log, query), 0n);
    return { outcome: 'found', amount, atSeconds: Number(timestamp) };
  } catch (error) {
    return { outcome: error instanceof TransactionReceiptNotFoundError ? 'missing' : 'unavailable' };
  }
}

/** Atomic units; 0 for any log but a transfer of this asset from someone else to the payer. */
function movedToPayer(log: DataLog, query: TransferQuery): bigint {
  const transfer = readTransfer(log, query.asset.toLowerCase());
  const toPayer = transfer?.to === query.payer.toLowerCase() && transfer.from !== transfer.to;
  return toPayer ? transfer.value : 0n;
}
