// Whether the payee's balance agrees with the transfers in the blocks that are compared: a difference is reported until it is
// explained.
import { accountKey, type ChainAccount } from '#src/domain/payment/reconciliation.ts';
import type { Logger } from '#src/ports/logger.ts';
import type { BooksDifference } from './read-blocks.ts';

export function booksDifferences(logger: Pick<Logger, 'error' | 'info'>) {
  const open = new Map<string, BooksDifference>();
  return {
    /** Logs a difference when it begins, when its sum changes, and when it is over. null: the balance agrees. */
    look(account: ChainAccount, difference: BooksDifference | null): void {
      const key = accountKey(account);
      const before = open.get(key);
      if (difference === null) {
        if (open.delete(key))
          logger.info('the balance of X402_PAY_TO agrees with the transfers again', { ...fieldsOf(before) });
        return;
      }
      open.set(key, difference);
      if (before?.units === difference.units) return;
      logger.error(
        'the balance of X402_PAY_TO does not agree with the transfers that the node shows: the blocks do not count, and are read again; compare with another node',
        { code: 'books_differ_from_chain', ...fieldsOf(difference) },
      );
    },
    /** null: there is none. */
    first: (): BooksDifference | null => open.values().next().value ?? null,
    /** Sum of all, in atomic units. */
    units: (): bigint =>
      [...open.values()].reduce((sum, { units }) => sum + (units < 0n ? -units : units), 0n),
  };
}

const fieldsOf = (difference: BooksDifference | undefined) =>
  difference && { ...difference, units: String(difference.units) };
