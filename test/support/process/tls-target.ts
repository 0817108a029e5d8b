// A TLS target on loopback: answers as configured, and records the requests byte by byte.
import type { AddressInfo, Socket } from 'node:net';
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls';
import { type Identity, makeTestCa, type TestCa } from './test-ca.ts';

export type RecordedRequest = {
  readonly method: string;
  /** Path and query as on the request line. */
  readonly path: string;
  /** Request line and header lines as they came, without the empty line at the end. */
  readonly head: string;
  /** Names in lower case; of several with one name, the last. */
  readonly headers: Readonly<Record<string, string>>;
  /** In order, names as they came. */
  readonly headerLines: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
  /** What the client asked for in SNI; null for none. */
  readonly servername: string | null;
  /** 1 for the first request since the start. */
  readonly number: number;
};

export type Answer = {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
};

/** Returns an answer, or writes to the socket and returns nothing. */
export type Handler = (
  request: RecordedRequest,
  socket: TLSSocket,
) => Answer | undefined | Promise<Answer | undefined>;

export type TlsTargetOptions = {
  /** 200 and `{"ok":true}` if absent. */
  readonly handler?: Handler;
  /** Names and addresses of the certificate; see `DEFAULT_NAMES`. */
  readonly names?: readonly string[];
  /** Issues the certificate; a fresh one where absent. */
  readonly ca?: TestCa;
  /** Shown instead of an issued certificate (expired, self-signed …). */
  readonly identity?: Identity;
  /** Listens here; 127.0.0.1 and any free port where absent. */
  readonly host?: string;
  readonly port?: number;
  readonly tls?: TlsOptions;
};

export type TlsTarget = {
  readonly port: number;
  /** PEM of the target's root: the content of an EGRESS_CA_FILE. */
  readonly caPem: string;
  /** Complete requests, in order of arrival. */
  readonly requests: RecordedRequest[];
  /** TCP connections accepted so far. */
  connections(): number;
  /** TCP connections open now. */
  open(): number;
  /** `https://target.test:PORT/hook` or with another path or host. */
  url(path?: string, host?: string): string;
  /** From the next request on. */
  answer(handler: Handler): void;
  /** Called for each connection whose handshake is complete, before anything is read from it. */
  onSecure(greet: (socket: TLSSocket) => void): void;
  close(): Promise<void>;
};

/** A name that DNS must answer with 127.0.0.1, all names under it, and the address itself. */
export const DEFAULT_NAMES = ['target.test', '*.target.test', '127.0.0.1', '::1'] as const;

export async function startTlsTarget(options: TlsTargetOptions = {}): Promise<TlsTarget> {
  const ca = options.ca ?? makeTestCa();
  const identity = options.identity ?? ca.issue({ names: options.names ?? DEFAULT_NAMES });
  let handler: Handler = options.handler ?? (() => ({ body: '{"ok":true}' }));
  const requests: RecordedRequest[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  let greet: (socket: TLSSocket) => void = () => undefined;

  const server = createServer({ ALPNProtocols: ['http/1.1'], ...options.tls, ...identity }, (socket) => {
    socket.on('error', () => socket.destroy());
    greet(socket);
    void readRequest(socket, () => requests.length + 1).then(async (request) => {
      if (request === null) return;
      requests.push(request);
      const answer = await handler(request, socket);
      if (answer) write(socket, answer);
    });
  });
  server.on('connection', (socket: Socket) => {
    connections++;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, options.host ?? '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;

  return {
    port,
    caPem: ca.pem,
    requests,
    connections: () => connections,
    open: () => sockets.size,
    url: (path = '/hook', host = 'target.test') => `https://${host}:${port}${path}`,
    answer: (next) => {
      handler = next;
    },
    onSecure: (next) => {
      greet = next;
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** Writes a whole answer and ends the connection. */
function write(socket: TLSSocket, answer: Answer): void {
  const body = Buffer.from(answer.body ?? '');
  const lines = Object.entries({ 'content-type': 'application/json', ...answer.headers });
  const head = [
    `HTTP/1.1 ${answer.status ?? 200} Status`,
    ...lines.map(([name, value]) => `${name}: ${value}`),
  ];
  if (!lines.some(([name]) => name.toLowerCase() === 'content-length')) {
    head.push(`content-length: ${body.length}`);
  }
  socket.end(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), body]));
}

/** The connection's first request, null where the connection ends before it is whole. */
function readRequest(socket: TLSSocket, number: () => number): Promise<RecordedRequest | null> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0);
    const onData = (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      const end = bytes.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = bytes.subarray(0, end).toString('latin1');
      const headerLines = head.split('\r\n').slice(1).map(splitLine);
      const headers = Object.fromEntries(headerLines.map(([name, value]) => [name.toLowerCase(), value]));
      const length = Number(headers['content-length'] ?? 0);
      if (bytes.length < end + 4 + length) return;
      socket.off('data', onData);
      socket.resume();
      const [method = '', path = ''] = head.split(' ');
      const servername = typeof socket.servername === 'string' ? socket.servername : null;
      const body = Buffer.from(bytes.subarray(end + 4));
      resolve({ method, path, head, headers, headerLines, body, servername, number: number() });
    };
    socket.on('data', onData);
    socket.once('close', () => resolve(null));
  });
}

function splitLine(line: string): readonly [string, string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon), line.slice(colon + 1).trim()];
}
