// postgres.js, made to survive the loss of a connection: it is an error of the statements that wait for it, and of no other.
import { Socket } from 'node:net';
import type postgres from 'postgres';

/** The arguments that postgres.js passes when it opens a socket. */
type Place = Pick<postgres.ParsedOptions, 'host' | 'port'> & { readonly path: string | false };

type LossOptions = { readonly fetch_types: false; readonly socket: (place: Place) => Socket };

/**
 * postgres.js 3.4.9 waits without end for a connection that is accepted and closed before authentication, and retries
 * without a pause: a proxy or a balancer whose server is unavailable behaves like this. An error reaches the caller.
 * The driver also queries each connection for array types, and throws outside of every promise if the connection is
 * lost meanwhile; drizzle reads arrays without that query.
 *
 * @returns for the options of one client, whose types leave `socket` out; hosts take turns. A query cannot be cancelled
 *   then: the server's answer to that is to end the connection.
 */
export function lostByError(): LossOptions {
  let turn = 0;
  return {
    fetch_types: false,
    socket({ path, host, port }) {
      const at = turn++ % host.length;
      const name = host[at] ?? '';
      // The driver reads the name to check the certificate against.
      const socket = Object.assign(new Socket(), { host: name });
      socket.on('end', () => socket.destroy(new ConnectionEnded()));
      return path ? socket.connect(path) : socket.connect(port[at] ?? 5432, name);
    },
  };
}

/** Has the code that the driver gives to a closed connection. */
class ConnectionEnded extends Error {
  readonly code = 'CONNECTION_CLOSED';
  constructor() {
    super('the connection was ended by its other side');
  }
}

type Work<T> = (transaction: postgres.TransactionSql) => T | Promise<T>;

/** Ends a transaction that can come to nothing any more. */
type Abandon = (error: Error) => void;

/**
 * postgres.js 3.4.9 writes to a lost connection, its own commit and rollback too, and that throws where no caller can
 * catch it: under Deno the process would end. So work that lost its connection does not end there; the transaction
 * fails here, with that error or, in `open`, through the observer of the connection, because the driver does not always
 * report the loss.
 */
export function begin<T>(
  client: postgres.Sql,
  options: string,
  work: Work<T>,
  open: Set<Abandon> = new Set(),
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let over = false;
    const end = () => {
      over = true;
      open.delete(fail);
    };
    const fail = (error: unknown) => {
      end();
      reject(error);
    };
    open.add(fail);
    const begun = client.begin(options, async (transaction) => {
      try {
        const value = await work(untilOver(transaction, () => over));
        if (!over) return { value };
      } catch (error) {
        if (!over && !isConnectionLost(error)) throw error;
        fail(error);
      }
      return new Promise<never>(() => undefined);
    });
    begun.then(({ value }) => {
      end();
      resolve(value);
    }, fail);
  });
}

export type SurvivingClient = {
  /** The client, with such transactions. */
  readonly client: postgres.Sql;
  /** Fails those that are still open: nothing of theirs will be answered. */
  abandon(error: Error): void;
};

/** `dress`: what a transaction gets beside. */
export function survivingCuts(
  client: postgres.Sql,
  dress: (transaction: postgres.TransactionSql) => postgres.TransactionSql = (same) => same,
): SurvivingClient {
  const open = new Set<Abandon>();
  const surviving = new Proxy(client, {
    get(target, name, receiver) {
      if (name !== 'begin') return Reflect.get(target, name, receiver);
      // `given`: perhaps options, then the work that gets the transaction.
      return (...given: readonly unknown[]) => {
        const work = given.at(-1) as Work<unknown>;
        const options = given.length > 1 ? String(given[0]) : '';
        return begin(target, options, (transaction) => work(dress(transaction)), open);
      };
    },
  });
  return {
    client: surviving,
    abandon(error) {
      for (const fail of [...open]) fail(error);
    },
  };
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

/** The connection is closed or reset, or its server has said that it closes it. */
const LOST = ['CONNECTION_CLOSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', '57P01', '57P02'];

/** drizzle wraps what the driver threw. */
function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('code' in error && LOST.includes(String(error.code))) || isConnectionLost(error.cause);
}
