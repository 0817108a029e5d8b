// TLS before the test server's gRPC, ended here with node:tls: gRPC's own secure server speaks plain text under Deno.
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { Transform } from 'node:stream';
import { createServer } from 'node:tls';
import { withoutGoaway } from './eventstore-server-goaway.ts';
import type { Identity } from './test-ca.ts';

export type TlsEnd = {
  /** Of 127.0.0.1, where TLS comes in. */
  readonly port: number;
  /** Port at the other end of the TLS connection whose plain text leaves here from `port`; itself where unknown. */
  origin(port: number): number;
  close(): void;
};

/** `behind`: port of 127.0.0.1 where the plain text goes. */
export async function startTlsEnd(identity: Identity, behind: number): Promise<TlsEnd> {
  const origins = new Map<number, number>();
  const open = new Set<Socket>();
  const server = createServer({ ...identity, ALPNProtocols: ['h2'] }, (secure) => {
    const plain = connect(behind, '127.0.0.1', () => {
      origins.set(plain.localPort ?? 0, secure.remotePort ?? 0);
      secure.pipe(filtered()).pipe(plain).pipe(secure);
    });
    for (const [socket, other] of [
      [secure, plain],
      [plain, secure],
    ] as const) {
      open.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        open.delete(socket);
        other.destroy();
      });
    }
  });
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    origin: (port) => origins.get(port) ?? port,
    close: () => {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

function filtered(): Transform {
  const filter = withoutGoaway();
  return new Transform({ transform: (chunk, _encoding, done) => done(null, filter(chunk)) });
}
