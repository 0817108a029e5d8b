// Receipts and numbers of transactions on the local chain.
import { type Hex, type TransactionReceipt, TransactionReceiptNotFoundError } from 'viem';
import { sleep } from '#src/lib/time.ts';

const EVERY_MS = 50;
const LIMIT_MS = 180_000;

type Receipts = { getTransactionReceipt(of: { readonly hash: Hex }): Promise<TransactionReceipt> };

/**
 * The receipt of a transaction once it is in a block. Rejects if the chain does not answer, and after 3 minutes.
 * viem's waitForTransactionReceipt polls again only after a new block and misses one that arrives while it polls; this
 * chain makes a block only for a transaction, so the last sender would wait forever.
 */
export async function mined(chain: Receipts, hash: Hex): Promise<TransactionReceipt> {
  const begun = performance.now();
  for (;;) {
    try {
      return await chain.getTransactionReceipt({ hash });
    } catch (cause) {
      if (!(cause instanceof TransactionReceiptNotFoundError)) throw cause;
      if (performance.now() - begun > LIMIT_MS) throw cause;
    }
    await sleep(EVERY_MS);
  }
}

/**
 * Sends one transaction after the other, each in the chain's pool before the next one gets its number. viem's nonce
 * manager repeats or skips numbers when transactions overlap on a busy machine.
 */
export type Numbered = <T>(send: (nonce: number) => Promise<T>) => Promise<T>;

/** `count`: the account's next number by the chain, pending transactions counted; read again after a failed send. */
export function numbered(count: () => Promise<number>): Numbered {
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
