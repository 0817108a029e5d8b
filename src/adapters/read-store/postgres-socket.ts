// Connections of postgres.js whose loss is an error of whoever waits for them, and of nobody else.
import { Socket } from 'node:net';
import type postgres from 'postgres';

/** What postgres.js knows when it asks for a socket. */
type Place = Pick<postgres.ParsedOptions, 'host' | 'port'> & { readonly path: string | false };

type LossOptions = { readonly fetch_types: false; readonly socket: (place: Place) => Socket };

/**
 * postgres.js 3.4.9 waits for ever for a connection that is taken and ended before it was let in, and tries again
 * without a pause: a proxy or a balancer whose server is away does just that. An error it gives to whoever asked.
 * It also asks each connection for array types, and throws beside every promise when that is lost meanwhile; drizzle
 * reads arrays by itself.
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
