// Reads blocks: the newest one that counts as final, and blocks by their time.
import { BlockNotFoundError, type Hex, type PublicClient } from 'viem';
import { NoAnswer } from './node.ts';
import { isUnknownTag } from './node-errors.ts';

export type Block = { readonly number: bigint; readonly hash: Hex; readonly timestamp: bigint };

/**
 * The newest block that counts: the node's `safe` one if `confirmations` is null, or so many blocks before its last. Throws
 * `NoAnswer`, with `no_safe_block` if the node does not know the tag.
 */
export async function finalBlock(client: PublicClient, confirmations: number | null): Promise<Block> {
  if (confirmations === null) return safeBlock(client);
  const latest = await client.getBlock();
  const number = latest.number - BigInt(confirmations);
  if (number === latest.number) return latest;
  return client.getBlock({ blockNumber: number > 0n ? number : 0n });
}

async function safeBlock(client: PublicClient): Promise<Block> {
  try {
    return await client.getBlock({ blockTag: 'safe' });
  } catch (error) {
    const isUnknown = error instanceof BlockNotFoundError || isUnknownTag(error);
    throw isUnknown ? new NoAnswer('no_safe_block') : error;
  }
}

const FIRST_STEP = 512n;

/**
 * Number of a block at or before `time` (Unix seconds), at most `tolerance` blocks before the last one that is; 0 if there is
 * none. Doubling steps back, then a binary search.
 */
export async function blockBefore(
  client: PublicClient,
  time: bigint,
  latest: Pick<Block, 'number'>,
  tolerance: number,
): Promise<bigint> {
  const timeOf = async (blockNumber: bigint) => (await client.getBlock({ blockNumber })).timestamp;
  let after = latest.number;
  let step = FIRST_STEP;
  let before = after > step ? after - step : 0n;
  while (before > 0n && (await timeOf(before)) > time) {
    after = before;
    step *= 2n;
    before = before > step ? before - step : 0n;
  }
  while (after - before > BigInt(Math.max(1, tolerance))) {
    const middle = (before + after) / 2n;
    if ((await timeOf(middle)) > time) after = middle;
    else before = middle;
  }
  return before;
}
