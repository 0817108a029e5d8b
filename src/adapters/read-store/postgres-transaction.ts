// Transactions of postgres.js that outlive the loss of their connection.
import type postgres from 'postgres';

type Work<T> = (transaction: postgres.TransactionSql) => T | Promise<T>;

/**
 * postgres.js 3.4.9 writes to a connection that is gone, its own rollback too, and that throws where nobody can catch
 * it: under Deno the process would end. It fails the transaction by itself when the connection closes; the work then
 * sends nothing more, and does not end.
 */
export async function begin<T>(client: postgres.Sql, options: string, work: Work<T>): Promise<T> {
  let over = false;
  try {
    const done = await client.begin(options, async (transaction) => {
      try {
        return { value: await work(untilOver(transaction, () => over)) };
      } catch (error) {
        if (over || isConnectionLost(error)) return new Promise<never>(() => undefined);
        throw error;
      }
    });
    return done.value;
  } finally {
    over = true;
  }
}

/** The same client with such transactions. `dress`: what a transaction gets beside. */
export function survivingCuts(
  client: postgres.Sql,
  dress: (transaction: postgres.TransactionSql) => postgres.TransactionSql = (same) => same,
): postgres.Sql {
  return new Proxy(client, {
    get(target, name, receiver) {
      if (name !== 'begin') return Reflect.get(target, name, receiver);
      // `given`: perhaps options, then the work that gets the transaction.
      return (...given: readonly unknown[]) => {
        const work = given.at(-1) as Work<unknown>;
        const options = given.length > 1 ? String(given[0]) : '';
        return begin(target, options, (transaction) => work(dress(transaction)));
      };
    },
  });
}

function untilOver(transaction: postgres.TransactionSql, isOver: () => boolean): postgres.TransactionSql {
  return new Proxy(transaction, {
    get(target, name, receiver) {
      if (name !== 'unsafe') return Reflect.get(target, name, receiver);
      return (...given: Parameters<typeof target.unsafe>) => {
        if (isOver()) throw new Error('the transaction is over');
        return target.unsafe(...given);
      };
    },
  });
}

/** The connection is closed, or its server has said that it closes it. */
const LOST = ['CONNECTION_CLOSED', '57P01', '57P02'];

/** drizzle wraps what the driver threw. */
function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('code' in error && LOST.includes(String(error.code))) || isConnectionLost(error.cause);
}
