// Reads the logs of one contract in ranges of blocks. Nodes refuse large ranges, filter loosely or repeat themselves: a range
// that is refused is divided, and each log is compared with the filter.
import { z } from '@x402/core/schemas';
import { type Hex, numberToHex, type PublicClient, type RpcLog, toEventSelector } from 'viem';
import { NoAnswer, type RpcCall } from './node.ts';
import { isAboutRange } from './node-errors.ts';
import { lowerHex } from './requirements.ts';

export const USED = toEventSelector('AuthorizationUsed(address,bytes32)');
export const CANCELLED = toEventSelector('AuthorizationCanceled(address,bytes32)');

export type BlockRange = { readonly from: number; readonly to: number };

/** Hashes and topics in lower case. */
export type Log = {
  readonly block: number;
  readonly index: number;
  readonly transaction: string;
  readonly topics: readonly string[];
  readonly data: Hex;
};

/** `asset`: lower case. `topics`: as in eth_getLogs, lower case, with all events in a list. */
export type LogFilter = {
  readonly asset: string;
  readonly topics: readonly [events: readonly Hex[], ...others: (readonly Hex[] | null)[]];
};

/** Names the place of a log, or of the one so many logs later. */
export const placeOf = ({ block, transaction, index }: Log, offset = 0): string =>
  `${block} ${transaction} ${index + offset}`;

/** The node answers, and does not return the logs of this range. */
export class RangeRefused extends NoAnswer {}

export const logsCall = ({ asset, topics }: LogFilter, { from, to }: BlockRange) => ({
  method: 'eth_getLogs' as const,
  params: [
    { address: asset as Hex, topics, fromBlock: numberToHex(from), toBlock: numberToHex(to) },
  ] as const,
});

/** Throws the error of a request for logs: `RangeRefused` if a smaller range may be a remedy. */
export function refusedLogs(cause: unknown): never {
  throw !(cause instanceof NoAnswer) && isAboutRange(cause) ? new RangeRefused('rpc_failed') : cause;
}

/** As `logsIn`, of a request of its own. */
export const readLogs = async (
  client: PublicClient,
  filter: LogFilter,
  range: BlockRange,
): Promise<readonly Log[]> => {
  const call: RpcCall = logsCall(filter, range);
  return logsIn(await client.request(call as never).catch(refusedLogs), filter, range);
};

/** The logs of an answer, each once, in the order of the chain; without those that the node returned beside them. */
export function logsIn(
  answer: unknown,
  { asset, topics }: LogFilter,
  { from, to }: BlockRange,
): readonly Log[] {
  if (!Array.isArray(answer)) throw new RangeRefused('malformed');
  const logs = new Map<string, Log>();
  for (const entry of answer) {
    const log = readLog(entry);
    if (log === null || log.address !== asset || log.block < from || log.block > to) continue;
    if (matches(log, topics)) logs.set(placeOf(log), log);
  }
  return [...logs.values()].sort((a, b) => a.block - b.block || a.index - b.index);
}

const hex = (form: RegExp) => z.string().regex(form).transform(lowerHex);
const Hash = hex(/^0x[0-9a-f]{64}$/i);
const Quantity = z
  .string()
  .regex(/^0x0*[0-9a-f]{1,13}$/i)
  .transform(Number);

/** What is read of a log is recorded in events, which nothing can change later. */
const LogForm = z.object({
  address: hex(/^0x[0-9a-f]{40}$/i),
  blockNumber: Quantity,
  logIndex: Quantity,
  transactionHash: Hash,
  topics: z.array(Hash),
  data: hex(/^0x([0-9a-f]{2})*$/i),
});

/** null: a log of a removed or unfinished block. One that is left out could be a transfer: a malformed one ends the answer. */
function readLog(log: RpcLog): (Log & { readonly address: string }) | null {
  const { blockNumber, logIndex, transactionHash } = log;
  if (log.removed === true || blockNumber === null || logIndex === null || transactionHash === null)
    return null;
  const form = LogForm.safeParse(log);
  if (!form.success) throw new RangeRefused('malformed');
  const { blockNumber: block, logIndex: index, transactionHash: transaction, ...rest } = form.data;
  return { ...rest, block, index, transaction };
}

/** EIP-3009 and ERC-20 index two members: a log with another number of topics is of another event. */
const TOPICS = 3;

const matches = (log: Log, topics: LogFilter['topics']): boolean =>
  log.topics.length === TOPICS &&
  topics.every((wanted, i) => wanted === null || wanted.some((one) => one === log.topics[i]));

// ── ranges ──────────────────────────────────────────────────────────────────────────────────────────────

/** Public nodes accept 10 to 10,000 blocks at once, and refuse more, or too many logs. */
export const LARGEST_RANGE = 2000;
/** Logs of one answer that are enough. */
const ENOUGH = 250;
/** Ranges after which a limit that was found is exceeded once more. */
const PATIENCE = 50;

export type RangeSizes = ReturnType<typeof rangeSizes>;

/** Blocks of the next range: grows while answers are small, and is halved when one is refused. */
export function rangeSizes(first: number) {
  let size = first;
  let limit = LARGEST_RANGE;
  let atLimit = 0;
  return {
    size: () => size,
    taken(logs: number): void {
      if (logs > ENOUGH) {
        size = Math.max(1, Math.floor(size / 2));
        return;
      }
      if (size === limit && ++atLimit >= PATIENCE) {
        limit = Math.min(LARGEST_RANGE, limit * 2);
        atLimit = 0;
      }
      size = Math.min(limit, size * 2);
    },
    /** Returns false if a single block was refused: then its size was not the reason. */
    refused(blocks: number): boolean {
      // The last range of a search may be short, and shows little about long ones.
      const isShort = blocks < size / 2;
      size = Math.max(1, Math.floor(blocks / 2));
      if (isShort) return blocks > 1;
      limit = blocks > 1 ? size : LARGEST_RANGE;
      atLimit = 0;
      return blocks > 1;
    },
  };
}

/**
 * Reads one range after the other, until `isDone` or the last block was read. A range that the node refuses, or does not
 * answer in time, is divided while `mayDivide`. `read` returns the number of logs. Throws `NoAnswer`, and what `read` throws.
 */
export async function readRanges(
  blocks: BlockRange,
  sizes: RangeSizes,
  {
    read,
    isDone,
    mayDivide,
  }: { read(range: BlockRange): Promise<number>; isDone(): boolean; mayDivide(): boolean },
): Promise<void> {
  for (let from = blocks.from; from <= blocks.to && !isDone(); ) {
    const to = Math.min(blocks.to, from + sizes.size() - 1);
    try {
      sizes.taken(await read({ from, to }));
      from = to + 1;
    } catch (error) {
      if (!isDivisible(error) || !mayDivide() || !sizes.refused(to - from + 1)) throw error;
    }
  }
}

const isDivisible = (error: unknown): boolean =>
  error instanceof RangeRefused || (error instanceof NoAnswer && error.code === 'timeout');
