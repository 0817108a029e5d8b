// The test server's port: a TCP relay before the gRPC server. It injects outages into the byte stream, as when a node is
// killed (connections end at once) or stopped by a signal (connections and bytes are accepted, nothing is answered, and
// all of it is processed when the node continues).
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Transform } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import type { Identity } from '#test/support/process/test-ca.ts';

export type Front = {
  readonly port: number;
  /** TCP connections of clients, open now. */
  connections(): number;
  /** Closes the port and every connection; frozen bytes are lost, as with a killed process. */
  stop(): Promise<void>;
  /** Opens the same port again. */
  start(): Promise<void>;
  freeze(): void;
  /** Resolves when the bytes received meanwhile are forwarded. */
  thaw(): Promise<void>;
  /** Closes every connection; the port stays open. */
  cutAll(): void;
  /** Identifies the connection of a call (`call.getPeer()`). */
  cut(peer: string): void;
  isOpen(peer: string): boolean;
};

type Pair = {
  readonly client: Socket;
  readonly inner: Socket;
  readonly held: Held[];
  /** Filters the client's bytes: returns those to forward. */
  readonly filter: (chunk: Buffer) => Buffer;
};
/** `chunk` null: the sender ended. */
type Held = { readonly to: 'client' | 'inner'; readonly chunk: Buffer | null };

/** Between two held chunks, so that a request and the cancellation that followed it stay two. */
const THAW_STEP_MS = 3;

export type FrontOptions = {
  /** Port of 127.0.0.1 that receives the bytes. */
  readonly behind: number;
  /** Of this front. */
  readonly port: number;
  /** Port of this front's own end of the connection that a call came by, of the port that the call knows. */
  origin(port: number): number;
  /** One for each connection. */
  filter(): (chunk: Buffer) => Buffer;
};

export async function startFront({ behind, port, origin, filter }: FrontOptions): Promise<Front> {
  const pairs = new Set<Pair>();
  let frozen = false;
  let server: Server;

  function accept(client: Socket): void {
    const inner = connect(behind, '127.0.0.1');
    const pair: Pair = { client, inner, held: [], filter: filter() };
    pairs.add(pair);
    for (const [from, to] of [
      [client, 'inner'],
      [inner, 'client'],
    ] as const) {
      from.setNoDelay(true);
      from.on('data', (chunk: Buffer) => pass(pair, to, chunk));
      from.on('end', () => pass(pair, to, null));
      from.on('error', () => pass(pair, to, null));
    }
    inner.on('close', () => end(pair));
    // A socket that is reset may close without an end and without an error.
    client.on('close', () => pass(pair, 'inner', null));
  }

  function pass(pair: Pair, to: Held['to'], chunk: Buffer | null): void {
    if (frozen || pair.held.length > 0) pair.held.push({ to, chunk });
    else deliver(pair, { to, chunk });
  }

  function deliver(pair: Pair, { to, chunk }: Held): void {
    const target = pair[to];
    if (!target.writable) return;
    if (chunk === null) target.end();
    else target.write(to === 'inner' ? pair.filter(chunk) : chunk);
  }

  /** Forwards the chunks received while frozen one by one, and those received since then at once. */
  async function release(pair: Pair): Promise<void> {
    let apart = pair.held.length;
    for (let next = pair.held[0]; next !== undefined && !frozen; next = pair.held[0]) {
      deliver(pair, next);
      if (apart-- > 0) await sleep(THAW_STEP_MS);
      pair.held.shift();
    }
  }

  function end(pair: Pair): void {
    pairs.delete(pair);
    pair.held.length = 0;
    pair.client.destroy();
    pair.inner.destroy();
  }

  function cutAll(): void {
    for (const pair of [...pairs]) end(pair);
  }

  function byPeer(peer: string): Pair | undefined {
    const port = origin(Number(peer.slice(peer.lastIndexOf(':') + 1)));
    return [...pairs].find((pair) => pair.inner.localPort === port);
  }

  async function listen(wanted: number): Promise<number> {
    server = createServer({ allowHalfOpen: true }, accept);
    server.listen(wanted, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  }

  const open = await listen(port);
  return {
    port: open,
    connections: () => pairs.size,
    stop: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      frozen = false;
      cutAll();
      await closed;
    },
    start: async () => {
      await listen(open);
    },
    freeze: () => {
      frozen = true;
    },
    thaw: async () => {
      frozen = false;
      await Promise.all([...pairs].map(release));
    },
    cutAll,
    cut: (peer) => {
      const pair = byPeer(peer);
      if (pair !== undefined) end(pair);
    },
    isOpen: (peer) => byPeer(peer) !== undefined,
  };
}

// Drops a client's GOAWAY frames: Deno 2.9.6 frees the session in the callback of the frame, nghttp2 uses the freed
// memory, and the process aborts. Nothing is lost: the client closes its connection next.
/** RFC 9113, 3.4: the preface of every client. */
const PREFACE_BYTES = 24;
/** RFC 9113, 4.1: length (3), type (1), flags (1), stream (4). */
const HEADER_BYTES = 9;
const GOAWAY = 7;

/** For one connection: receives its bytes in order, in chunks of any size, and returns those to forward. */
export function withoutGoaway(): (chunk: Buffer) => Buffer {
  let header = Buffer.alloc(0);
  let body = PREFACE_BYTES;
  let dropping = false;
  return (chunk) => {
    const kept: Buffer[] = [];
    for (let at = 0; at < chunk.length; ) {
      const inBody = body > 0;
      const piece = chunk.subarray(at, at + (inBody ? body : HEADER_BYTES - header.length));
      at += piece.length;
      if (inBody) {
        body -= piece.length;
        if (!dropping) kept.push(piece);
        continue;
      }
      header = Buffer.concat([header, piece]);
      if (header.length < HEADER_BYTES) continue;
      dropping = header[3] === GOAWAY;
      body = header.readUIntBE(0, 3);
      if (!dropping) kept.push(header);
      header = Buffer.alloc(0);
    }
    return Buffer.concat(kept);
  };
}

// TLS termination before the test server's gRPC, with node:tls: gRPC's secure server sends plain text under Deno.
export type TlsEnd = {
  /** The TLS port of 127.0.0.1. */
  readonly port: number;
  /** Port at the other end of the TLS connection whose plain text leaves here from `port`; itself where unknown. */
  origin(port: number): number;
  close(): void;
};

/** `behind`: port of 127.0.0.1 that receives the plain text. */
export async function startTlsEnd(identity: Identity, behind: number): Promise<TlsEnd> {
  const origins = new Map<number, number>();
  const open = new Set<Socket>();
  const server = createTlsServer({ ...identity, ALPNProtocols: ['h2'] }, (secure) => {
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
