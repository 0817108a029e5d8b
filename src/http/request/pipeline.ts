// Every request comes in here and every answer goes out here: whose call it is, its id, the headers all answers carry.
import { refused } from '#src/domain/refusal.ts';
import type { HttpDeps } from '#src/http/deps.ts';
import type { Observable } from '#src/http/instrumentation.ts';
import { faultAnswer, refusalAnswer } from '#src/http/response/errors.ts';
import { clientAddress } from './client-address.ts';
import { CORS } from './methods.ts';
import { beginCall, type Call, requestId } from './request-context.ts';

/** `clientAddress`: the socket's peer, as the runtime tells it. */
export type Peer = { readonly clientAddress: string };

export type Fetch = (request: Request, peer: Peer) => Promise<Response>;

export type Routed = (request: Request) => Promise<Response>;

export function frontDoor(deps: HttpDeps, route: Routed): Observable {
  return async (request, peer, seen) => {
    const id = requestId(request.headers.get('x-request-id'), deps.entropy);
    seen.requestId = id;
    const headers = new Headers();
    try {
      if (!hasReadableHost(request)) {
        return finished(refusalAnswer(refused('invalid_request', 'The Host header is malformed.')), {
          id,
          headers,
        });
      }
      const forwarded = request.headers.get('x-forwarded-for');
      const client = clientAddress(peer.clientAddress, forwarded, deps.settings.trustsProxy);
      const routable = routableRequest(request);
      beginCall(routable, { id, client, headers, seen });
      return finished(await route(routable), { id, headers });
    } catch (cause) {
      deps.logger.error('a request failed outside its route', { requestId: id, cause });
      return finished(faultAnswer(cause), { id, headers });
    }
  };
}

/**
 * HEAD is GET; the runtimes leave its body away. Elysia looks for the path from the URL's 12th character on, past a
 * short host, and Bun gives a path alone where there is no Host.
 */
function routableRequest(request: Request): Request {
  const { url, headers, body } = request;
  const pathStart = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('//') + 2);
  const path = pathStart === -1 ? '/' : url.slice(pathStart);
  const routable = pathStart >= SHORTEST_PATH_START ? url : `http://localhost${path}`;
  // No route has another: what a Request may not be made of (CONNECT, TRACE) is answered as one that none serves.
  const method = METHODS.has(request.method) ? request.method : 'PATCH';
  if (method === 'HEAD') return new Request(routable, { method: 'GET', headers });
  if (routable === url) return request;
  return new Request(routable, { method, headers, body, ...(body === null ? {} : { duplex: 'half' }) });
}

const SHORTEST_PATH_START = 11;
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/**
 * RFC 9112 §3.2. With any other the path that is routed is not the one that was asked for, or no route could read the
 * URL, which the runtimes make of it. None, and an empty one, are nobody's to misread.
 */
function hasReadableHost({ headers, url }: Request): boolean {
  const host = headers.get('host') ?? '';
  if (host !== '' && !(/^[^\s/?#@\\]+$/.test(host) && URL.canParse(`http://${host}/`))) return false;
  return url.startsWith('/') || URL.canParse(url);
}

function finished(response: Response, call: Pick<Call, 'id' | 'headers'>): Response {
  const { headers } = response;
  for (const [name, value] of call.headers) headers.set(name, value);
  for (const [name, value] of Object.entries(CORS)) headers.set(name, value);
  headers.set('x-request-id', call.id);
  headers.set('x-content-type-options', 'nosniff');
  // Answers of the paid routes must never be stored, and no other may be unless its route says so.
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store');
  return response;
}
