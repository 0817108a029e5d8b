// postgres.js, made to survive the loss of a connection: it is an error of the statements that wait for it, and of no other.
import { Socket } from 'node:net';
import type postgres from 'postgres';
import { systemCode } from '#src/lib/system-error.ts';

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

type Work<T> = (transaction: postgres.Sql) => T | Promise<T>;
type Unsafe = postgres.Sql['unsafe'];

/** What drizzle calls of a client of postgres.js, with every statement prepared and transactions that end. */
export class DrizzleClient {
  /** drizzle puts its parsers there. */
  readonly options: postgres.Sql['options'];
  readonly unsafe: Unsafe;
  readonly #client: postgres.Sql;

  constructor(client: postgres.Sql) {
    this.#client = client;
    this.options = client.options;
    this.unsafe = prepared(client);
  }

  /** drizzle's types ask for all of postgres.js. */
  get sql(): postgres.Sql {
    return this as unknown as postgres.Sql;
  }

  /**
   * postgres.js 3.4.9 writes to a lost connection, its own commit and rollback too, and that throws where no caller can
   * catch it: under Deno the process would end. So work that lost its connection does not end there: the transaction fails
   * here.
   */
  begin<T>(work: Work<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let over = false;
      const fail = (error: unknown) => {
        over = true;
        reject(error);
      };
      const begun = this.#client.begin(async (transaction) => {
        try {
          const unsafe = prepared(transaction, () => over);
          const value = await work({ unsafe } as postgres.Sql);
          if (!over) return { value };
        } catch (error) {
          if (!over && !isConnectionLost(error)) throw error;
          fail(error);
        }
        return new Promise<never>(() => undefined);
      });
      begun.then(({ value }) => {
        over = true;
        resolve(value);
      }, fail);
    });
  }
}

/**
 * drizzle sends every statement by `unsafe`, which postgres.js parses and plans again each time. Our statements are few
 * and fixed: prepared, a point read costs about half.
 */
function prepared(sql: postgres.ISql, isOver: () => boolean = () => false): Unsafe {
  return (query, values) => {
    if (isOver()) throw new Error('the transaction is over');
    return sql.unsafe(query, values, { prepare: true });
  };
}

/** The connection is closed or reset, or its server has said that it closes it. */
const LOST = ['CONNECTION_CLOSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', '57P01', '57P02'];

/** drizzle wraps what the driver threw. */
function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return LOST.includes(systemCode(error) ?? '') || isConnectionLost(error.cause);
}
