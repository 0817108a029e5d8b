// A proxy in front of a relay or a facilitator: passes everything on, records all, and changes what a test specifies.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { loopbackServer } from './loopback-server.ts';

export type FrontRequest = {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};
export type FrontAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};
/** `null`: the connection is cut without an answer. `hang`: there is none until the caller gives up. */
export type FrontRule = (
  request: FrontRequest,
  forward: () => Promise<FrontAnswer>,
) => Promise<FrontAnswer | 'hang' | null>;

export type RelayFront = {
  readonly url: string;
  /** Where it passes on to. */
  behind(url: string): void;
  /** From the next request on; null: passes on. */
  rule(rule: FrontRule | null): void;
  /** Values of PAYMENT-SIGNATURE that came, in order. */
  readonly payments: readonly string[];
  /** Closes the port and every connection. */
  down(): Promise<void>;
  /** Opens the same port again. */
  up(): Promise<void>;
};

export async function startRelayFront(behind = ''): Promise<RelayFront> {
  let rule: FrontRule | null = null;
  const payments: string[] = [];
  const server = await loopbackServer(async (request, response) =>
    reply(request, response, await answer(request)),
  );

  async function answer(incoming: IncomingMessage): Promise<FrontAnswer | 'hang' | null> {
    const { method = 'GET', url: path = '/' } = incoming;
    const headers = Object.fromEntries(
      Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
    );
    const body = await text(incoming);
    const payment = headers['payment-signature'];
    if (payment !== undefined) payments.push(payment);
    const request = { method, path, headers, body };
    const forward = () => forwarded(behind, request);
    return rule === null ? forward() : rule(request, forward);
  }

  return {
    url: server.url,
    behind: (url) => {
      behind = url;
    },
    rule: (next) => {
      rule = next;
    },
    payments,
    down: server.down,
    up: server.up,
  };
}

const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'host', 'content-length', 'transfer-encoding']);
const endToEnd = (headers: Iterable<readonly [string, string]>) =>
  Object.fromEntries([...headers].filter(([name]) => !HOP_BY_HOP.has(name)));

async function forwarded(
  behind: string,
  { method, path, headers, body }: FrontRequest,
): Promise<FrontAnswer> {
  const answer = await fetch(`${behind}${path}`, {
    method,
    headers: endToEnd(Object.entries(headers)),
    ...(body === '' ? {} : { body }),
    redirect: 'manual',
    // A kept-alive connection may be closing, which would be an unwanted fault.
    keepalive: false,
  });
  return { status: answer.status, headers: endToEnd(answer.headers), body: await answer.text() };
}

function reply(
  request: IncomingMessage,
  response: ServerResponse,
  answer: FrontAnswer | 'hang' | null,
): void {
  if (answer === 'hang') return;
  if (answer === null) request.socket.destroy();
  else response.writeHead(answer.status, answer.headers).end(answer.body);
}
