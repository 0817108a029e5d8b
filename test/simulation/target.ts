// The targets of calls, and the network to them: a request may fail before it is sent, act and fall silent, answer late or
// with any status.
import type { ErrorCategory } from '#src/domain/event-fields.ts';
import type { FailureReason } from '#src/domain/failure-reasons.ts';
import type { Outbound, OutboundRequest } from '#src/ports/outbound.ts';
import type { Resolver } from '#src/ports/resolver.ts';
import { succeeding } from '#test/support/world/fakes.ts';
import type { Host } from './host.ts';

export type TargetWeather = {
  readonly outcome: Record<TargetOutcome, number>;
  dnsFails: number;
};

export type TargetOutcome = 'answers' | 'error' | 'not_connected' | 'silent' | 'cut' | 'redirect';

/** A request that arrived at a target. */
export type Hit = {
  readonly jobId: string;
  readonly path: string;
  readonly host: string;
  /** Virtual ms. */
  readonly at: number;
};

const BASE = succeeding({ address: '203.0.114.7' });

const failed = (errorCategory: ErrorCategory, reason: FailureReason) => ({ errorCategory, reason });
const NO_RESPONSE = { status: null, responseBytes: null, responseBodySha256: null } as const;

export function simulatedOutbound(host: Host, weather: TargetWeather, onHit: (hit: Hit) => void): Outbound {
  const { random, trace } = host;

  function arrive({ headers, target }: OutboundRequest): void {
    const jobId = headers.find(([name]) => name === 'webhook-id')?.[1] ?? '';
    onHit({ jobId, path: target.path, host: host.name, at: host.scheduler.now });
  }

  return {
    async send(request) {
      const outcome = random.weighted(weather.outcome);
      trace.reached(`target: ${outcome}`);
      const limit = request.timeoutMs;
      if (outcome === 'not_connected') {
        await host.call('a target that does not connect', () => undefined, { counts: true });
        return {
          ...BASE,
          ...NO_RESPONSE,
          phase: 'connect',
          sent: 'no',
          errorCategory: 'connect_error',
          reason: 'connection_refused',
          tlsVersion: null,
          leafSha256: null,
        };
      }
      const answerMs =
        outcome === 'silent' ? limit : random.between(1, random.chance(0.2) ? limit - 100 : 300);
      await host.call('a target', () => arrive(request), {
        delays: { request: [1, 60], answer: [answerMs, answerMs] },
        counts: true,
      });
      switch (outcome) {
        case 'silent':
          return {
            ...BASE,
            ...NO_RESPONSE,
            phase: 'headers',
            sent: 'yes',
            ...failed('timeout', 'timed_out'),
          };
        case 'cut':
          return { ...BASE, ...failed('truncated_response', 'closed_early'), truncated: 'unknown' };
        case 'redirect':
          return { ...BASE, status: 302, ...failed('target_redirect', 'http_status') };
        case 'error': {
          const status = random.pick([500, 503, 429, 400, 404]);
          const category =
            status === 429
              ? 'target_rate_limited'
              : status < 500
                ? 'target_client_error'
                : 'target_server_error';
          return {
            ...BASE,
            status,
            ...failed(category, 'http_status'),
            retryAfterMs: random.chance(0.2) ? random.int(0, 4000) : null,
          };
        }
        default:
          return BASE;
      }
    },
  };
}

export const simulatedResolver = (host: Host, weather: TargetWeather): Resolver => ({
  resolve: () =>
    host.call(null, () =>
      host.random.chance(weather.dnsFails)
        ? { outcome: 'failed' as const, timedOut: false }
        : { outcome: 'addresses' as const, addresses: ['203.0.114.7'] },
    ),
});
