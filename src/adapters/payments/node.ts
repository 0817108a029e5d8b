// The client of the chain's node: JSON-RPC calls that end with their caller's signal.
import {
  createPublicClient,
  type Hex,
  http,
  type PublicClient,
  type TransactionReceipt,
  TransactionReceiptNotFoundError,
} from 'viem';
import { getHttpRpcClient } from 'viem/utils';
import { systemCode } from '#src/lib/system-error.ts';
import { type AbortSignalLike, withTimeout } from '#src/lib/time.ts';
import { UnusableTerms } from './requirements.ts';

/**
 * `code`: for the log. `why`: the status, or the code of the runtime or of JSON-RPC; null if there is none. The library's
 * messages are not used: they contain the URL, which may contain a secret.
 */
export class NoAnswer extends Error {
  readonly code: string;
  readonly why: string | null;
  constructor(code: string, why: string | null = null) {
    super(code);
    this.code = code;
    this.why = why;
  }
}

/** The innermost one that there is. */
function whyOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const inner = whyOf(error.cause);
  if (inner !== null) return inner;
  if ('status' in error && typeof error.status === 'number') return `status ${error.status}`;
  if ('code' in error && typeof error.code === 'number') return `JSON-RPC error ${error.code}`;
  if (error instanceof SyntaxError) return 'not JSON';
  return systemCode(error);
}

/** Time limit of one call; a call that fails is repeated once. */
const CALL_MS = 4000;

export type RpcCall = { readonly method: string; readonly params: readonly unknown[] };

/** `batch`: sends the calls as one request, once. Returns the node's answer as it is. */
export type NodeClient = PublicClient & { batch(calls: readonly RpcCall[]): Promise<unknown> };

/** `signal`: ends all calls of this client, also one that waits for its answer. */
export function rpcClient(rpcUrl: string, signal?: AbortSignal): NodeClient {
  const options = {
    timeout: CALL_MS,
    fetchFn: (url: string | URL | Request, init?: RequestInit) =>
      fetch(url, { ...init, signal: joined(init?.signal, signal) }),
  };
  const client: PublicClient = createPublicClient({
    transport: http(rpcUrl, { ...options, retryCount: 1, retryDelay: 100 }),
  });
  const { request } = getHttpRpcClient(rpcUrl, options);
  return Object.assign(client, {
    batch: (calls: readonly RpcCall[]): Promise<unknown> =>
      request({ body: calls.map((call, id) => ({ ...call, id })) }),
  });
}

const joined = (...signals: readonly (AbortSignal | null | undefined)[]): AbortSignal =>
  AbortSignal.any(signals.filter((signal) => signal instanceof AbortSignal));

/**
 * Runs calls with one client, all within `ms` and until `signal` aborts: then its calls are aborted and this throws
 * `NoAnswer`, as it does for an answer that is missing or unusable. `isOver`: whether the calls were aborted.
 */
export async function queryNode<T>(
  rpcUrl: string,
  { ms, signal }: { readonly ms: number; readonly signal?: AbortSignalLike | undefined },
  work: (client: NodeClient, isOver: () => boolean) => Promise<T>,
): Promise<T> {
  const calls = new AbortController();
  const stopped = Promise.withResolvers<never>();
  const stop = () => stopped.reject(new NoAnswer('stopped'));
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop, { once: true });
  try {
    const client = rpcClient(rpcUrl, calls.signal);
    const query = Promise.race([work(client, () => calls.signal.aborted), stopped.promise]);
    return await withTimeout(query, ms, () => new NoAnswer('timeout'));
  } catch (error) {
    if (error instanceof NoAnswer || error instanceof UnusableTerms) throw error;
    throw new NoAnswer('rpc_failed', whyOf(error));
  } finally {
    signal?.removeEventListener('abort', stop);
    calls.abort();
  }
}

/** CAIP-2. */
export const networkOf = async (client: PublicClient): Promise<string> =>
  `eip155:${await client.getChainId()}`;

/** Throws `NoAnswer` if the node serves another chain. */
export async function demandNetwork(client: PublicClient, network: string): Promise<void> {
  if ((await networkOf(client)) !== network) throw new NoAnswer('other_chain');
}

/** null: the transaction is in no block. */
export async function findReceipt(client: PublicClient, hash: Hex): Promise<TransactionReceipt | null> {
  try {
    const receipt = await client.getTransactionReceipt({ hash });
    // The library's type hides it: a node may have a receipt of a transaction that is pending.
    return receipt.blockNumber === null ? null : receipt;
  } catch (error) {
    if (error instanceof TransactionReceiptNotFoundError) return null;
    throw error;
  }
}
