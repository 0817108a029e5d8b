// Every request comes in here and every answer goes out here: whose call it is, its id, the headers all answers carry.
import { beginCall, type Call, requestId } from './call.ts';
import { clientAddress } from './client-address.ts';
import type { HttpDeps } from './deps.ts';
import { faultAnswer } from './errors.ts';
import { CORS } from './methods.ts';
import type { ProcessMeter } from './process-metrics.ts';

/** `clientAddress`: the socket's peer, as the runtime tells it. */
export type Peer = { readonly clientAddress: string };

export type Fetch = (request: Request, peer: Peer) => Promise<Response>;

export type Routed = (request: Request) => Promise<Response>;

export function frontDoor(deps: HttpDeps, route: Routed, meter: ProcessMeter): Fetch {
  return async (request, peer) => {
    const end = meter.begin();
    const id = requestId(request.headers.get('x-request-id'), deps.entropy);
    const headers = new Headers();
    try {
      const forwarded = request.headers.get('x-forwarded-for');
      const client = clientAddress(peer.clientAddress, forwarded, deps.settings.trustsProxy);
      const routable = routableRequest(request);
      beginCall(routable, { id, client, headers });
      return finished(await route(routable), { id, headers }, request.method);
    } catch (cause) {
      deps.logger.error('a request failed outside its route', { requestId: id, cause });
      return finished(faultAnswer(cause), { id, headers }, request.method);
    } finally {
      end();
    }
  };
}

/** HEAD is GET without the body. Elysia looks for the path from the URL's 12th character on, past a short host. */
function routableRequest(request: Request): Request {
  const { method, url } = request;
  const pathStart = url.indexOf('/', url.indexOf('//') + 2);
  if (method !== 'HEAD' && pathStart >= 11) return request;
  const routable = pathStart >= 11 ? url : `http://localhost${url.slice(pathStart)}`;
  return method === 'HEAD'
    ? new Request(routable, { method: 'GET', headers: request.headers })
    : new Request(routable, request);
}

function finished(response: Response, call: Pick<Call, 'id' | 'headers'>, method: string): Response {
  const answer = method === 'HEAD' ? new Response(null, response) : response;
  const { headers } = answer;
  for (const [name, value] of call.headers) headers.set(name, value);
  for (const [name, value] of Object.entries(CORS)) headers.set(name, value);
  headers.set('x-request-id', call.id);
  headers.set('x-content-type-options', 'nosniff');
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store');
  return answer;
}
