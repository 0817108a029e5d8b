// Every request as operators see it: counted, timed, traced, and at debug one line of the log; under its route's
// pattern, never under the path that was asked for.

import type { Fetch, Peer } from '#src/http/request/pipeline.ts';
import type { OpenSpan } from '#src/ports/telemetry.ts';
import type { HttpDeps } from './deps.ts';
import type { ProcessMeter } from './process-metrics.ts';

/** What becomes known of a request while it is answered. */
export type Seen = {
  requestId: string;
  /** null: no route has its path. */
  route: string | null;
};

export type Observable = (request: Request, peer: Peer, seen: Seen) => Promise<Response>;

export type ObservedDeps = Pick<HttpDeps, 'clock' | 'operators'>;

/**
 * A `traceparent` of the caller's is not read: whoever may call could write into, and grow, the traces of others. Its
 * x-request-id stands in the line of the log beside our trace's id.
 */
export function observed(deps: ObservedDeps, meter: ProcessMeter, answer: Observable): Fetch {
  const { clock, operators } = deps;
  const { figures, tracer, detail } = operators;
  return (request, peer) => {
    const method = METHODS.has(request.method) ? request.method : '_OTHER';
    if (tracer === null) return observe(request, peer, method, null);
    return tracer.within(method, 'server', (span) => observe(request, peer, method, span));
  };

  async function observe(
    request: Request,
    peer: Peer,
    method: string,
    span: OpenSpan | null,
  ): Promise<Response> {
    const seen: Seen = { requestId: '', route: null };
    const [begun, end, answered] = [clock.monotonic(), meter.begin(), figures.requestBegun()];
    let status = 500;
    try {
      const response = await answer(request, peer, seen);
      status = response.status;
      return response;
    } finally {
      const seconds = (clock.monotonic() - begun) / 1000;
      const { route, requestId } = seen;
      end();
      answered({ route, method, status, seconds });
      if (span !== null) tellSpan(span, { route, method, status });
      detail.debug('request', { requestId, method, route, status, ms: Math.round(seconds * 1000) });
    }
  }
}

/** RFC 9110 §9.3 and RFC 5789: a caller may invent others without end. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE']);

/** By OpenTelemetry's conventions for HTTP servers. */
function tellSpan(
  span: OpenSpan,
  { route, method, status }: { route: string | null; method: string; status: number },
): void {
  if (route !== null) span.rename(`${method} ${route}`);
  span.setAttributes({
    'http.request.method': method,
    'http.route': route,
    'http.response.status_code': status,
  });
  if (status >= 500) span.fail();
}
