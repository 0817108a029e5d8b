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
