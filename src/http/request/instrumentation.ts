// Every request as operators see it: counted, timed, traced, and at level debug logged; by its route's pattern, never by
// the path that was requested.
import { Type } from '@sinclair/typebox';
import { Closed, Count } from '#src/domain/schema-parts.ts';
import type { RequestContext } from '#src/http/request/request-context.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { DetailLogger } from '#src/ports/logger.ts';
import type { Figures, OpenSpan, Tracer } from '#src/ports/telemetry.ts';

export type InstrumentationDeps = {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly operators: {
    readonly figures: Pick<Figures, 'requestBegun'>;
    readonly tracer: Tracer | null;
    readonly detail: DetailLogger;
  };
};

/**
 * A `traceparent` of the caller is ignored: any caller could write into, and grow, the traces of others. Its
 * x-request-id is logged beside our trace id.
 */
export function instrumentRequests({ clock, operators }: InstrumentationDeps, meter: ProcessMeter) {
  const { figures, tracer, detail } = operators;
  return (sent: string, context: RequestContext, answer: () => Promise<Response>): Promise<Response> => {
    const method = METHODS.has(sent) ? sent : '_OTHER';
    if (tracer === null) return observed(method, context, answer, null);
    return tracer.within(method, 'server', (span) => observed(method, context, answer, span));
  };

  async function observed(
    method: string,
    context: RequestContext,
    answer: () => Promise<Response>,
    span: OpenSpan | null,
  ): Promise<Response> {
    const [begun, answered] = [clock.monotonic(), figures.requestBegun()];
    meter.begin();
    let status = 500;
    try {
      const response = await answer();
      status = response.status;
      return response;
    } finally {
      const ms = clock.monotonic() - begun;
      const { route, id: requestId } = context;
      meter.answered(ms);
      answered({ route, method, status, seconds: ms / 1000 });
      if (span !== null) describeSpan(span, { route, method, status });
      detail.debug('request', { requestId, method, route, status, ms: Math.round(ms) });
    }
  }
}

/** RFC 9110 §9.3 and RFC 5789: callers may invent any number of others. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE']);

function describeSpan(
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

export const ProcessFigures = Closed({
  uptimeMs: Count,
  requests: Count,
  inFlight: Count,
  p50Ms: Type.Number({ minimum: 0, description: '0 before the first answer.' }),
  p99Ms: Type.Number({ minimum: 0 }),
});

const KEPT = 1024;
const STALE = { answers: 64, ms: 100 };

export type ProcessMeter = ReturnType<typeof processMeter>;

export function processMeter(clock: Pick<Clock, 'monotonic'>) {
  const started = clock.monotonic();
  const durations: number[] = [];
  let [requests, answers] = [0, 0];
  let sorted: {
    readonly answers: number;
    readonly at: number;
    readonly durations: readonly number[];
  } | null = null;

  /** Sorting costs more than the rest of an answer with these figures: it is done again after `STALE`. */
  function sortedDurations(): readonly number[] {
    const now = clock.monotonic();
    if (sorted === null || answers - sorted.answers >= STALE.answers || now - sorted.at >= STALE.ms)
      sorted = { answers, at: now, durations: durations.toSorted((a, b) => a - b) };
    return sorted.durations;
  }

  return {
    begin(): void {
      requests += 1;
    },
    answered(ms: number): void {
      durations[answers++ % KEPT] = ms;
    },
    read(): typeof ProcessFigures.static {
      const all = sortedDurations();
      const at = (share: number) => all[Math.min(all.length - 1, Math.floor(all.length * share))] ?? 0;
      const uptimeMs = Math.floor(clock.monotonic() - started);
      return { uptimeMs, requests, inFlight: requests - answers, p50Ms: at(0.5), p99Ms: at(0.99) };
    },
  };
}
