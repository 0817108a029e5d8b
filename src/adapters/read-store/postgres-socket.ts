// The sockets of postgres.js, on which a connection that its other side ends is lost by an error.
import { Socket } from 'node:net';
import type postgres from 'postgres';

/** What postgres.js knows when it asks for a socket. */
type Place = Pick<postgres.ParsedOptions, 'host' | 'port'> & { readonly path: string | false };

/**
 * postgres.js 3.4.9 waits for ever for a connection that is taken and ended before it was let in, and tries again
 * without a pause: a proxy or a balancer whose server is away does just that. An error it gives to whoever asked.
 *
 * @returns for the options of one client, whose types leave `socket` out; hosts take turns. A query cannot be cancelled
 *   then: the server's answer to that is to end the connection.
 */
export function endingByError(): { readonly socket: (place: Place) => Socket } {
  let turn = 0;
  return {
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
