// Answers that one node gave at one moment. An address may have several nodes behind it, of which one lags: it answers a
// request for logs of blocks that it does not have with none. So the logs come with their last block, in one batch request.
import { type Hex, numberToHex, RpcRequestError } from 'viem';
import type { Block } from './chain-blocks.ts';
import { NoAnswer, type NodeClient, type RpcCall } from './node.ts';
import { isAboutRange } from './node-errors.ts';

export type AnsweredWithBlock = { readonly results: readonly unknown[]; readonly block: Block };

/** Reads after which a node that refused a batch is sent one again. */
const PATIENCE = 50;

export type BlockReads = ReturnType<typeof readsWithBlock>;

/** Of one address, which is remembered as one that takes batches, or as one that does not. */
export function readsWithBlock(url: string) {
  let takesBatches: boolean | null = null;
  let alone = 0;

  /** null: the answer is none to a batch. Throws the error of a call in it. */
  async function inBatch(client: NodeClient, calls: readonly RpcCall[], block: RpcCall) {
    const all = [...calls, block];
    const answers = await client.batch(all);
    if (!Array.isArray(answers)) return null;
    const results = all.map((body, id) => {
      const answer = answers.find((one) => one?.id === id) ?? null;
      if (answer?.error) throw new FailedInBatch({ body: { ...body }, error: answer.error, url });
      return answer?.result;
    });
    return results.includes(undefined) ? null : results;
  }

  async function tryBatch(client: NodeClient, calls: readonly RpcCall[], block: RpcCall) {
    for (let isFirst = true; ; isFirst = false) {
      try {
        return await inBatch(client, calls, block);
      } catch (error) {
        if (error instanceof FailedInBatch) throw error;
        const mayBeLost = !isAboutRange(error);
        if (mayBeLost && isFirst) continue;
        // A node that takes batches refuses this one for what is in it, or is unavailable.
        if (takesBatches || mayBeLost) throw error;
        return null;
      }
    }
  }

  /** One after the other, between two reads of the block, which must be the same. */
  async function inTurn(client: NodeClient, calls: readonly RpcCall[], block: RpcCall) {
    const request = (call: RpcCall): Promise<unknown> => client.request(call as never);
    const before = blockIn(await request(block));
    const results: unknown[] = [];
    for (const call of calls) results.push(await request(call));
    const after = await request(block);
    if (blockIn(after).hash !== before.hash) throw new NoAnswer('replicas_differ');
    return [...results, after];
  }

  return {
    /** Throws `NoAnswer`, with `behind` if the node lacks the block, and the error of a call that fails. */
    async read(client: NodeClient, calls: readonly RpcCall[], number: number): Promise<AnsweredWithBlock> {
      const call = { method: 'eth_getBlockByNumber', params: [numberToHex(number), false] };
      const isTried = takesBatches !== false || ++alone > PATIENCE;
      const batched = isTried ? await tryBatch(client, calls, call) : null;
      if (isTried) alone = 0;
      const answers = batched ?? (await inTurn(client, calls, call));
      if (isTried) takesBatches = batched !== null;
      const block = blockIn(answers.at(-1));
      if (Number(block.number) !== number) throw new NoAnswer('malformed');
      return { results: answers.slice(0, -1), block };
    },
  };
}

class FailedInBatch extends RpcRequestError {}

function blockIn(answer: unknown): Block {
  if (answer === null || answer === undefined) throw new NoAnswer('behind');
  const { number, hash, timestamp } = answer as Record<string, unknown>;
  const isText = [number, hash, timestamp].every(
    (one) => typeof one === 'string' && /^0x[0-9a-f]+$/i.test(one),
  );
  if (!isText) throw new NoAnswer('malformed');
  return { number: BigInt(number as Hex), hash: hash as Hex, timestamp: BigInt(timestamp as Hex) };
}
