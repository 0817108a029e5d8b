// A front of a chain's node: JSON-RPC calls pass, or fail as scripted.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { jsonOf, loopbackServer, sendJson } from '#test/support/process/loopback-server.ts';

/** `cut`: the connection is closed without an answer. `hang`: no answer. An object: this result. */
export type NodeRule = (call: NodeCall) => 'pass' | 'cut' | 'hang' | { readonly result: unknown };

export type NodeCall = { readonly method: string; readonly params: readonly unknown[] };

type Asked = { readonly id: number; readonly method: string; readonly params?: readonly unknown[] };

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
    const body = await jsonOf<Asked | Asked[]>(request);
    const batch = [body].flat();
    const ruled = batch.map(({ method, params = [] }) => {
      const call = { method, params };
      calls.push(call);
      return rule(call);
    });
    if (ruled.includes('hang')) {
      hanging.push(new Promise((closed) => response.once('close', () => closed())));
      return;
    }
    if (ruled.includes('cut')) {
      request.socket.destroy();
      return;
    }
    const answers = await Promise.all(
      batch.map(async (one, i) => {
        const by = ruled[i];
        return typeof by === 'object' ? { jsonrpc: '2.0', id: one.id, result: by.result } : pass(one);
      }),
    );
    sendJson(response, Array.isArray(body) ? answers : answers[0]);
  }
  /** Whatever the size of the answer: the logs of many blocks are megabytes. */
  async function pass(one: Asked): Promise<unknown> {
    const passed = await fetch(behind, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(one),
      signal: AbortSignal.timeout(30_000),
    });
    return passed.json();
  }

  const { url, down, up } = await loopbackServer(answer);
  return {
    url,
    calls,
    rule: (next) => {
      rule = next;
    },
    blind: (on) => {
      rule = () => (on ? 'cut' : 'pass');
    },
    closed: async () => void (await Promise.all(hanging)),
    down,
    up,
  };
}

/** The result of a call to a node itself. Throws for an error. */
export async function rpc(url: string, method: string, ...params: readonly unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  const { result, error } = (await response.json()) as { result: unknown; error?: unknown };
  if (error !== undefined) throw new Error(JSON.stringify(error));
  return result;
}
