// The receipt of a transaction once it is mined. Not by viem's waitForTransactionReceipt: it looks again only when a new
// block has come, and does not notice the block that comes while it is looking. This chain makes a block only for a
// transaction, so whoever sent the last one would then wait for its receipt until somebody sends another.
import { setTimeout as pause } from 'node:timers/promises';
import { type Hex, type TransactionReceipt, TransactionReceiptNotFoundError } from 'viem';

const EVERY_MS = 50;
const LIMIT_MS = 180_000;

type Receipts = { getTransactionReceipt(of: { readonly hash: Hex }): Promise<TransactionReceipt> };

/** Rejects where the chain cannot be asked, and after 3 minutes without the transaction in a block. */
export async function mined(chain: Receipts, hash: Hex): Promise<TransactionReceipt> {
  const begun = performance.now();
  for (;;) {
    try {
      return await chain.getTransactionReceipt({ hash });
    } catch (cause) {
      if (!(cause instanceof TransactionReceiptNotFoundError)) throw cause;
      if (performance.now() - begun > LIMIT_MS) throw cause;
    }
    await pause(EVERY_MS);
  }
}
