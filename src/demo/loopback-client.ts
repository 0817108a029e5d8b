// Calls to the service of this very machine: over a connection of its own, because the runtimes' clients obey
// HTTP_PROXY for loopback addresses too.
import { request } from 'node:http';
import { connect } from 'node:net';
import type { Send } from '#src/app/buyer.ts';

export type Answer = { readonly status: number; readonly type: string; readonly body: string };

const PATIENCE_MS = 60_000;

/** `body`: sent as JSON where there is one. */
export async function callLoopback(method: string, url: string, body?: unknown): Promise<Answer> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const answer = await sendLoopback(method, url, text, { 'content-type': 'application/json' });
  return { status: answer.status, type: answer.header('content-type') ?? '', body: answer.body };
}

/** `headers`: beside those of the connection; left out where there is no body. */
export const sendLoopback: Send = (method, url, text, headers = {}) => {
  const { hostname, port, pathname, search } = new URL(url);
  return new Promise((resolve, reject) => {
    const call = request(
      {
        method,
        hostname,
        port,
        path: pathname + search,
        headers: {
          connection: 'close',
          ...(text === undefined ? {} : { ...headers, 'content-length': Buffer.byteLength(text) }),
        },
        createConnection: () => connect(Number(port), hostname),
      },
      (answer) => {
        const chunks: Uint8Array[] = [];
        answer.on('data', (chunk: Uint8Array) => chunks.push(chunk));
        answer.on('error', reject);
        answer.on('end', () => {
          resolve({
            status: answer.statusCode ?? 0,
            header: (name) => answer.headers[name.toLowerCase()]?.toString() ?? null,
            body: Buffer.concat(chunks).toString('utf8'),
          });
        });
      },
    );
    call.setTimeout(PATIENCE_MS, () => call.destroy(new Error(`${url} did not answer`)));
    call.on('error', reject);
    call.end(text);
  });
};
