// Whether the payee's balance agrees with the transfers in the blocks that are compared, of each account.
import { accountKey, type ChainAccount } from '#src/domain/payment/reconciliation.ts';
import type { BooksDifference } from './read-blocks.ts';

export function booksDifferences() {
  const open = new Map<string, BooksDifference>();
  return {
    /** null: the balance agrees. */
    look(account: ChainAccount, difference: BooksDifference | null): void {
      if (difference === null) open.delete(accountKey(account));
      else open.set(accountKey(account), difference);
    },
    /** null: there is none. */
    first: (): BooksDifference | null => open.values().next().value ?? null,
    /** Sum of all, in atomic units. */
    units: (): bigint =>
      [...open.values()].reduce((sum, { units }) => sum + (units < 0n ? -units : units), 0n),
  };
}
