// A TCP proxy on loopback that can freeze: connections stay open and new ones are accepted, but no bytes are forwarded.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export type FreezingProxy = {
  readonly port: number;
  freeze(): void;
  /** Forwards the bytes received while frozen. */
  thaw(): void;
  /** Resets the connections of all clients, like a restarted host. */
  reset(): void;
  close(): Promise<void>;
};

/** To a port of loopback. */
export async function startFreezingProxy(behind: number): Promise<FreezingProxy> {
  const sockets = new Set<Socket>();
  let held: (() => void)[] | null = null;
  const pass = (step: () => void) => (held === null ? step() : void held.push(step));

  function forward(from: Socket, to: Socket): void {
    sockets.add(from);
    from.setNoDelay(true);
    from.on('data', (chunk) => pass(() => to.write(chunk)));
    from.on('error', () => undefined);
    from.on('close', () => {
      sockets.delete(from);
      pass(() => to.end());
    });
  }
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    clients.add(client);
    client.once('close', () => clients.delete(client));
    const upstream = connect(behind, '127.0.0.1');
    forward(client, upstream);
    forward(upstream, client);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    port: address.port,
    freeze() {
      held ??= [];
    },
    thaw() {
      const steps = held ?? [];
      held = null;
      for (const step of steps) step();
    },
    reset() {
      for (const client of clients) client.resetAndDestroy();
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
