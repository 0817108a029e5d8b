// A front of a facilitator or a chain whose URL is a secret, as a provider's with a key in it is; it fails the way that
// discloses most: by repeating all that it was sent.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { singleExchange } from '#src/adapters/payments/exchange.ts';
import type { Guard } from '#test/support/chain/facilitator-login.ts';
import { loopbackServer } from './loopback-server.ts';

/**
 * `repeat`: 500, with the request in reason phrase, header and body. `refuse`: a complete "no" whose reason is the
 * request. `cut`: the connection is closed without an answer. `refuse_login`: 401 that repeats the request. `name_login`: a
 * complete "no" whose reason is the value of x-api-key alone.
 */
export type FrontMode = 'pass' | 'repeat' | 'refuse' | 'cut' | 'refuse_login' | 'name_login';

export type SecretFront = {
  /** With its secrets. */
  readonly url: string;
  /** From the next request on. */
  mode(next: FrontMode): void;
  /** Every request of the secret URL: target and body. */
  readonly seen: readonly string[];
  /** Closes the port and every connection. */
  down(): Promise<void>;
  /** Opens the same port again. */
  up(): Promise<void>;
};

/**
 * `behind`: where it passes on to. `query`: the whole of it, without question mark. Other URLs are 404. `guard`: who does not
 * log in gets 401.
 */
export async function startSecretFront(
  behind: string,
  { path, query = '', guard }: { readonly path: string; readonly query?: string; readonly guard?: Guard },
): Promise<SecretFront> {
  const seen: string[] = [];
  let mode: FrontMode = 'pass';

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = '' } = request;
    const body = await text(request);
    const { pathname, search } = new URL(url, behind);
    if (!`${pathname}/`.startsWith(`/${path}/`) || search.slice(1) !== query) {
      response.writeHead(404).end();
      return;
    }
    seen.push(`${url}\n${body}`);
    const refused = ((await guard?.check(request)) ?? null) !== null;
    if (mode === 'cut') request.socket.destroy();
    else if (refused) repeat(response, 'refuse_login', request, body);
    else if (mode !== 'pass') repeat(response, mode, request, body);
    else {
      // Not by fetch: under Deno it sends a POST again where the connection was cut.
      const sent = body === '' ? {} : { body: JSON.parse(body) };
      const passed = await singleExchange({
        url: `${behind}${pathname.slice(path.length + 1)}`,
        timeoutMs: 30_000,
        ...sent,
      });
      if ('code' in passed) request.socket.destroy();
      else {
        const json = JSON.stringify(passed.json ?? null);
        response.writeHead(passed.status, { 'content-type': 'application/json' }).end(json);
      }
    }
  }

  const server = await loopbackServer(answer);
  return {
    url: `${server.url}/${path}${query === '' ? '' : `?${query}`}`,
    mode: (next) => {
      mode = next;
    },
    seen,
    down: server.down,
    up: server.up,
  };
}

/** In the words of a facilitator and of JSON-RPC at once. */
function repeat(
  response: ServerResponse,
  mode: Exclude<FrontMode, 'pass' | 'cut'>,
  { url = '', headers }: IncomingMessage,
  body: string,
): void {
  const all =
    mode === 'name_login' ? String(headers['x-api-key']) : `${url} ${JSON.stringify(headers)} ${body}`;
  const error = { code: -32_000, message: all, data: all };
  const verdict = { isValid: false, success: false, invalidReason: all, errorReason: all, transaction: '' };
  const no = mode === 'refuse_login' ? {} : verdict;
  const status = { repeat: 500, refuse: 200, refuse_login: 401, name_login: 200 }[mode];
  response.writeHead(status, { 'content-type': 'application/json', 'x-request': encodeURI(url) });
  response.end(JSON.stringify({ jsonrpc: '2.0', id: 0, error, ...no, message: all }));
}
