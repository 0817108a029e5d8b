// A front of a chain's node: JSON-RPC calls pass, or fail as scripted.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { singleExchange } from '#src/adapters/payments/exchange.ts';

/** `cut`: the connection is closed without an answer. `hang`: no answer. An object: this result. */
export type NodeRule = (call: NodeCall) => 'pass' | 'cut' | 'hang' | { readonly result: unknown };

export type NodeCall = { readonly method: string; readonly params: readonly unknown[] };

export type NodeFront = {
  readonly url: string;
  /** All calls so far. */
  readonly calls: readonly NodeCall[];
  /** From the next call on. */
  rule(rule: NodeRule): void;
  /** true: nothing can be looked up, whatever has happened on the chain; false: all calls pass. */
  blind(on: boolean): void;
  /** Resolves when the callers of all calls that hang have given up. */
  closed(): Promise<void>;
  /** Closes the port and every connection. */
  down(): Promise<void>;
  /** Opens the same port again. */
  up(): Promise<void>;
};

/** `behind`: URL of the node. */
export async function startNodeFront(behind: string): Promise<NodeFront> {
  const calls: NodeCall[] = [];
  const hanging: Promise<void>[] = [];
  let rule: NodeRule = () => 'pass';

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = (await json(request)) as NodeCall & { readonly id: number };
    const call = { method: body.method, params: body.params ?? [] };
    calls.push(call);
    const ruled = rule(call);
    if (ruled === 'hang') {
      hanging.push(new Promise((closed) => response.once('close', () => closed())));
      return;
    }
    if (ruled === 'cut') {
      request.socket.destroy();
      return;
    }
    if (ruled !== 'pass') return send(response, { jsonrpc: '2.0', id: body.id, result: ruled.result });
    const passed = await singleExchange({ url: behind, body, timeoutMs: 30_000 });
    if ('code' in passed) request.socket.destroy();
    else send(response, passed.json);
  }

  let server: Server;
  async function listen(port: number): Promise<number> {
    server = createServer((request, response) => {
      answer(request, response).catch(() => request.socket.destroy());
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, '127.0.0.1', resolve);
    });
    return (server.address() as AddressInfo).port;
  }
  const port = await listen(0);
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    rule: (next) => {
      rule = next;
    },
    blind: (on) => {
      rule = () => (on ? 'cut' : 'pass');
    },
    closed: async () => void (await Promise.all(hanging)),
    down: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
    up: async () => {
      await listen(port);
    },
  };
}

const send = (response: ServerResponse, value: unknown): void =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
