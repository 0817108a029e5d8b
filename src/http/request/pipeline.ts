// Every request enters here and every answer leaves here: whose request it is, its id, the headers of all answers.
import { refused } from '#src/domain/refusal.ts';
import type { Settings } from '#src/http/deps.ts';
import {
  type InstrumentationDeps,
  instrumentRequests,
  type ProcessMeter,
} from '#src/http/request/instrumentation.ts';
import { faultAnswer, refusalAnswer } from '#src/http/response/errors.ts';
import { ON_EVERY_ANSWER } from '#src/http/response/json.ts';
import type { Entropy } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import { clientAddress, type RequestContext, requestId, setContext } from './request-context.ts';

/** `clientAddress`: of the socket's peer, as the runtime reports it. */
export type Peer = { readonly clientAddress: string };

export type Fetch = (request: Request, peer: Peer) => Promise<Response>;

export type Routed = (request: Request) => Response | Promise<Response>;

export type PipelineDeps = InstrumentationDeps &
  Settings<'trustsProxy'> & { readonly entropy: Entropy; readonly logger: Logger };

export function pipeline(deps: PipelineDeps, meter: ProcessMeter, route: Routed): Fetch {
  const { entropy, logger, settings } = deps;
  const instrumented = instrumentRequests(deps, meter);
  return (request, peer) => {
    const id = requestId(request.headers.get('x-request-id'), entropy);
    const context: RequestContext = { id, client: '', headers: new Map(), route: null };
    return instrumented(request.method, context, () => answer(request, peer, context));
  };

  async function answer(request: Request, peer: Peer, context: RequestContext): Promise<Response> {
    try {
      if (!hasReadableHost(request))
        return finished(refusalAnswer(refused('invalid_request', 'The Host header is malformed.')), context);
      const forwardedFor = request.headers.get('x-forwarded-for');
      context.client = clientAddress(peer.clientAddress, forwardedFor, settings.trustsProxy);
      const routable = routableRequest(request);
      setContext(routable, context);
      return finished(await route(routable), context);
    } catch (cause) {
      logger.bug('a request failed outside its route', { requestId: context.id, cause });
      return finished(faultAnswer(cause), context);
    }
  }
}

/**
 * HEAD is GET; the runtimes leave its body out. Elysia looks for the path from the URL's 12th character on, past a short
 * host, and Bun passes a path alone if there is no Host.
 */
function routableRequest(request: Request): Request {
  const { url, method, headers } = request;
  const pathStart = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('//') + 2);
  if (pathStart >= SHORTEST_PATH_START && method !== 'HEAD') return request;
  const path = pathStart === -1 ? '/' : url.slice(pathStart);
  const routable = pathStart >= SHORTEST_PATH_START ? url : `http://localhost${path}`;
  if (method === 'HEAD') return new Request(routable, { method: 'GET', headers });
  const { body } = request;
  const init = { headers, body, ...(body === null ? {} : { duplex: 'half' as const }) };
  // No route has another method: what a Request cannot be made of (CONNECT, TRACE) is answered as one that none serves.
  return new Request(routable, { method: METHODS.has(method) ? method : 'PATCH', ...init });
}

const SHORTEST_PATH_START = 11;
const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/**
 * RFC 9112 §3.2. With any other Host the path that is routed is not the one that was requested, or no route could read
 * the URL that the runtimes make of it. A missing or empty Host header is accepted.
 */
function hasReadableHost({ headers, url }: Request): boolean {
  const host = headers.get('host') ?? '';
  if (host !== '' && !(/^[^\s/?#@\\]+$/.test(host) && URL.canParse(`http://${host}/`))) return false;
  return url.startsWith('/') || URL.canParse(url);
}

const EVERY = Object.entries(ON_EVERY_ANSWER);

function finished(response: Response, context: RequestContext): Response {
  const { headers } = response;
  for (const [name, value] of context.headers) headers.set(name, value);
  // What is built once has them already.
  if (!headers.has('x-content-type-options')) for (const [name, value] of EVERY) headers.set(name, value);
  headers.set('x-request-id', context.id);
  // Answers of the paid routes must never be stored, and no other unless its route says so.
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store');
  return response;
}
