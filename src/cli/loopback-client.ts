// Calls to the service of this very machine: over a connection of its own, because the runtimes' clients obey
// HTTP_PROXY for loopback addresses too.
import { request } from 'node:http';
import { connect } from 'node:net';

export type Answer = { readonly status: number; readonly type: string; readonly body: string };

const PATIENCE_MS = 60_000;

/** `body`: sent as JSON where there is one. */
export function callLoopback(method: string, url: string, body?: unknown): Promise<Answer> {
  const { hostname, port, pathname, search } = new URL(url);
  const text = body === undefined ? null : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const call = request(
      {
        method,
        hostname,
        port,
        path: pathname + search,
        headers: {
          connection: 'close',
          ...(text === null
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
        },
        createConnection: () => connect(Number(port), hostname),
      },
      (answer) => {
        const chunks: Uint8Array[] = [];
        answer.on('data', (chunk: Uint8Array) => chunks.push(chunk));
        answer.on('error', reject);
        answer.on('end', () => {
          const type = answer.headers['content-type'] ?? '';
          resolve({ status: answer.statusCode ?? 0, type, body: Buffer.concat(chunks).toString('utf8') });
        });
      },
    );
    call.setTimeout(PATIENCE_MS, () => call.destroy(new Error(`${url} did not answer`)));
    call.on('error', reject);
    call.end(text ?? undefined);
  });
}
