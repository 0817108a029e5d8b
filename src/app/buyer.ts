// The buyer, for commands and the demo: its packages are large, so import this when it is used.
import { fileLedger, type Ledger, type LedgerOptions } from '#src/adapters/buyer/ledger.ts';
import { acquireFileLock, createLockFile } from '#src/adapters/signing/file-lock.ts';

export type { Evidence, Execution, Fact } from '#src/adapters/buyer/evidence.ts';
export { addressOf, keyPayer } from '#src/adapters/buyer/payment.ts';
export { limitedSend, present } from '#src/adapters/buyer/present.ts';
export { type Order, type PurchaseResult, purchase } from '#src/adapters/buyer/purchase.ts';
export { systemClock } from '#src/adapters/runtime/clock.ts';

/** The lock is a file beside the ledger. Throws `LedgerUnusable`. */
export const openLedger = (options: Omit<LedgerOptions, 'lock'>): Ledger =>
  fileLedger({
    ...options,
    lock(path) {
      const file = `${path}.lock`;
      createLockFile(file);
      return acquireFileLock(file, 0);
    },
  });
