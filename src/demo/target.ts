// The demo's connections on this machine: a webhook target with a certificate of a local root, and calls to the service.
import { once } from 'node:events';
import { request } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { makeLocalCa } from './certificates/local-ca.ts';

/** A request as received. */
export type Received = {
  readonly method: string;
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
};

export type DemoTarget = {
  readonly url: string;
  /** Answers 503 each time: for retries. */
  readonly failingUrl: string;
  /** PEM of the root certificate that its certificate is issued by. */
  readonly caPem: string;
  /** Complete requests so far, in order. */
  readonly received: readonly Received[];
  close(): Promise<void>;
};

const DAY_MS = 86_400_000;

const FAILING = '/hooks/failing';

/** `host`: an IP address of this machine. */
export async function startDemoTarget(host: string): Promise<DemoTarget> {
  const now = Date.now();
  const validity = { notBefore: new Date(now - DAY_MS), notAfter: new Date(now + 30 * DAY_MS) };
  const ca = makeLocalCa('relay demo root', validity);
  const received: Received[] = [];
  const server = createServer(ca.issue({ ...validity, names: [host] }), async (incoming, response) => {
    const { method = '', url = '' } = incoming;
    received.push({ method, path: url, headers: flat(incoming.headers), body: await buffer(incoming) });
    const fails = url === FAILING;
    response.writeHead(fails ? 503 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ thanks: !fails }));
  });
  await once(server.listen(0, host), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://${host}:${port}/hooks/orders`,
    failingUrl: `https://${host}:${port}${FAILING}`,
    caPem: ca.pem,
    received,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value ?? '')]));
}

const CALL_TIMEOUT_MS = 60_000;

/** Calls the service on this machine. `body`: sent as JSON. */
export async function callLoopback(
  method: string,
  url: string,
  body?: unknown,
): Promise<{ readonly status: number; readonly body: string }> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const headers = { 'content-type': 'application/json' };
  const answer = await sendLoopback(new Request(url, { method, headers, ...sent }));
  return { status: answer.status, body: await answer.text() };
}

/** Uses a connection of its own, because the runtimes' fetch obeys HTTP_PROXY for loopback addresses too. */
export async function sendLoopback(call: Request): Promise<Response> {
  const { hostname, port, pathname, search } = new URL(call.url);
  const text = await call.text();
  const length = text === '' ? {} : { 'content-length': String(Buffer.byteLength(text)) };
  return new Promise((resolve, reject) => {
    const sending = request(
      {
        method: call.method,
        hostname,
        port,
        path: pathname + search,
        headers: { ...Object.fromEntries(call.headers), ...length, connection: 'close' },
        createConnection: () => connect(Number(port), hostname),
      },
      (answer) => {
        const init = { status: answer.statusCode ?? 500, headers: flat(answer.headers) };
        buffer(answer).then((body) => resolve(new Response(new Uint8Array(body), init)), reject);
      },
    );
    sending.setTimeout(CALL_TIMEOUT_MS, () => sending.destroy(new Error(`${call.url} did not answer`)));
    sending.on('error', reject);
    sending.end(text);
  });
}
