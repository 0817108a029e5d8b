// An HTTP server on a free port of loopback: for doubles, and for fronts that are taken down and brought up again.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { fixedPort } from './fixed-port.ts';

export type LoopbackServer = {
  /** `http://127.0.0.1:port` */
  readonly url: string;
  /** Closes the port and every connection. */
  down(): Promise<void>;
  /** Opens the same port again. */
  up(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
};

export type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;

/** Where the handler throws, the connection is closed without an answer. It keeps no process alive. */
export async function loopbackServer(handle: Handler): Promise<LoopbackServer> {
  let server: Server;
  const port = await fixedPort();
  async function up(): Promise<void> {
    server = createServer(async (request, response) => {
      try {
        await handle(request, response);
      } catch {
        // Not the response's own: Bun then answers an empty 200.
        request.socket.destroy();
      }
    }).unref();
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, '127.0.0.1', resolve);
    });
  }
  await up();
  const down = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return {
    url: `http://127.0.0.1:${port}`,
    down,
    up,
    [Symbol.asyncDispose]: down,
  };
}

export async function jsonOf<T>(request: IncomingMessage): Promise<T> {
  return JSON.parse(await text(request));
}

export const sendJson = (response: ServerResponse, value: unknown, status = 200): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
