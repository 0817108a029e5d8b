// Receipts and nonces of transactions on the local chain.
import { type Hex, type TransactionReceipt, TransactionReceiptNotFoundError } from 'viem';
import { sleep } from '#src/lib/time.ts';

const POLL_MS = 50;
const LIMIT_MS = 180_000;

type ReceiptSource = { getTransactionReceipt(of: { readonly hash: Hex }): Promise<TransactionReceipt> };

/**
 * Returns the receipt of a transaction as soon as it is in a block. Rejects if the chain does not answer, and after `limitMs`.
 * viem's waitForTransactionReceipt polls again only after a new block and misses one that arrives while it polls; this
 * chain makes a block only for a transaction, so the last sender would wait forever.
 */
export async function mined(
  chain: ReceiptSource,
  hash: Hex,
  limitMs = LIMIT_MS,
): Promise<TransactionReceipt> {
  const begun = performance.now();
  for (;;) {
    try {
      return await chain.getTransactionReceipt({ hash });
    } catch (cause) {
      if (!(cause instanceof TransactionReceiptNotFoundError)) throw cause;
      if (performance.now() - begun > limitMs) throw cause;
    }
    await sleep(POLL_MS);
  }
}

/**
 * Sends one transaction after the other, each in the chain's pool before the next one gets its nonce. viem's nonce
 * manager repeats or skips nonces when transactions overlap on a busy machine.
 */
export type SendInOrder = <T>(send: (nonce: number) => Promise<T>) => Promise<T>;

/** `count`: the account's next nonce, pending transactions included; it is read again after a failed send. */
export function inNonceOrder(count: () => Promise<number>): SendInOrder {
  let last: Promise<unknown> = Promise.resolve();
  let known: number | null = null;
  return (send) => {
    const sending = last.then(async () => {
      const nonce = known ?? (await count());
      known = null;
      const sent = await send(nonce);
      known = nonce + 1;
      return sent;
    });
    last = sending.catch(() => undefined);
    return sending;
  };
}
