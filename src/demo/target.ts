// The demo's target: what someone's webhook endpoint would be, on this machine, with a certificate of a root of its own.
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { makeLocalCa } from './certificates/local-ca.ts';

/** As it came over the wire. */
export type Received = {
  readonly method: string;
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
};

export type DemoTarget = {
  readonly url: string;
  /** PEM of the root that vouches for it. */
  readonly caPem: string;
  /** Complete requests so far, in order. */
  readonly received: readonly Received[];
  close(): Promise<void>;
};

const DAY_MS = 86_400_000;

/** `host`: an IP address of this machine. */
export async function startDemoTarget(host: string): Promise<DemoTarget> {
  const now = Date.now();
  const validity = { notBefore: new Date(now - DAY_MS), notAfter: new Date(now + 30 * DAY_MS) };
  const ca = makeLocalCa('relay demo root', validity);
  const received: Received[] = [];
  const server = createServer(ca.issue({ ...validity, names: [host] }), (request, response) => {
    const chunks: Uint8Array[] = [];
    request.on('data', (chunk: Uint8Array) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '' } = request;
      received.push({ method, path: url, headers: flat(request.headers), body: Buffer.concat(chunks) });
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"thanks":true}');
    });
  });
  const port = await listen(server, host);
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return {
    url: `https://${host}:${port}/hooks/orders`,
    caPem: ca.pem,
    received,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

function listen(server: Server, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, () => resolve((server.address() as AddressInfo).port));
  });
}
