// A proxy between a buyer and a relay: passes everything on, records all, and changes what a test specifies.
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
/** `null`: the connection is cut without an answer. */
export type FrontRule = (
  request: FrontRequest,
  forward: () => Promise<FrontAnswer>,
) => Promise<FrontAnswer | null>;

export type RelayFront = {
  readonly url: string;
  /** Where it passes on to. */
  behind(url: string): void;
  /** From the next request on; null: passes on. */
  rule(rule: FrontRule | null): void;
  /** Values of PAYMENT-SIGNATURE that came, in order. */
  readonly payments: readonly string[];
  close(): Promise<void>;
};

export async function startRelayFront(): Promise<RelayFront> {
  let behind = '';
  let rule: FrontRule | null = null;
  const payments: string[] = [];
  const server = await loopbackServer(async (request, response) =>
    reply(request, response, await answer(request)),
  );

  async function answer(incoming: IncomingMessage): Promise<FrontAnswer | null> {
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
    close: server.down,
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
  });
  return { status: answer.status, headers: endToEnd(answer.headers), body: await answer.text() };
}

function reply(request: IncomingMessage, response: ServerResponse, answer: FrontAnswer | null): void {
  if (answer === null) request.socket.destroy();
  else response.writeHead(answer.status, answer.headers).end(answer.body);
}
