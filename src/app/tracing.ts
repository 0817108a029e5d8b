// The ports that leave this process, with a span around each call: what was asked for and how it ended, by words of our
// own. Never a URL, host, address, header, body, key, payer or reason of another's: of names only the public job's.
import type { EventLog } from '#src/ports/event-log.ts';
import type { AttemptReport, Outbound } from '#src/ports/outbound.ts';
import type { Payments } from '#src/ports/payments.ts';
import type { Resolver } from '#src/ports/resolver.ts';
import type { SpanFacts, Tracer } from '#src/ports/telemetry.ts';
import type { Targets } from './targets.ts';

export function tracedLog(log: EventLog, tracer: Tracer): EventLog {
  return {
    append: (stream, expected, events) =>
      tracer.within('event_log.append', 'client', (span) => {
        const types = events.map(({ type }) => type).join(' ');
        span.setAttributes({ ...factsOfStream(stream), 'relay.event_log.types': types });
        return log.append(stream, expected, events);
      }),
    readStream: (stream, options) =>
      tracer.within('event_log.read', 'client', async (span) => {
        const events = await log.readStream(stream, options);
        span.setAttributes({ ...factsOfStream(stream), 'relay.event_log.events': events.length });
        return events;
      }),
    head: () => tracer.within('event_log.head', 'client', () => log.head()),
    // Those that go on behind the calls are none of a call's.
    readAll: (options) => log.readAll(options),
    subscribeAll: (options) => log.subscribeAll(options),
    health: () => log.health(),
    close: () => log.close(),
  };
}

/** The other categories' names are hashes of what a caller sent. */
function factsOfStream(stream: string): SpanFacts {
  const [category = '', id = ''] = stream.split('-');
  return { 'relay.event_log.category': category, 'relay.job.id': category === 'job' ? id : null };
}

/** The look-up of an attempt is told by the attempt's own timings. */
export function tracedTargets(targets: Targets, tracer: Tracer | null): Targets {
  if (tracer === null) return targets;
  return {
    ...targets,
    resolver: tracedResolver(targets.resolver, tracer),
    freeResolver: tracedResolver(targets.freeResolver, tracer),
    outbound: tracedOutbound(targets.outbound, tracer),
  };
}

function tracedResolver(resolver: Resolver, tracer: Tracer): Resolver {
  return {
    resolve: (name, timeoutMs) =>
      tracer.within('dns', 'client', async (span) => {
        const resolution = await resolver.resolve(name, timeoutMs);
        span.setAttributes({ 'relay.outcome': resolution.outcome });
        return resolution;
      }),
  };
}

function tracedOutbound(outbound: Outbound, tracer: Tracer): Outbound {
  return {
    send: (request) =>
      tracer.within('attempt', 'client', async (span) => {
        const report = await outbound.send(request);
        span.setAttributes({ 'http.request.method': request.method, ...factsOfAttempt(report) });
        if (report.errorCategory !== null) span.fail();
        return report;
      }),
  };
}

/** As the job's public record tells it. */
function factsOfAttempt({ errorCategory, phase, sent, status, timings }: AttemptReport): SpanFacts {
  return {
    'relay.outcome': errorCategory ?? 'succeeded',
    'relay.attempt.phase': phase,
    'relay.attempt.sent': sent,
    'http.response.status_code': status,
    'relay.attempt.dns_ms': timings.dnsMs,
    'relay.attempt.connect_ms': timings.connectMs,
    'relay.attempt.tls_ms': timings.tlsMs,
    'relay.attempt.ttfb_ms': timings.ttfbMs,
    'relay.attempt.total_ms': timings.totalMs,
  };
}

export function tracedPayments(payments: Payments, tracer: Tracer | null): Payments {
  if (tracer === null) return payments;
  const traced = <T extends { readonly outcome: string }>(name: string, work: () => Promise<T>) =>
    tracer.within(name, 'client', async (span) => {
      const answer = await work();
      span.setAttributes({ 'relay.outcome': answer.outcome });
      return answer;
    });
  return {
    mode: payments.mode,
    validateTerms: (payment) => payments.validateTerms(payment),
    validateNew: (payment, nowMs) => payments.validateNew(payment, nowMs),
    verify: (payment) => traced('payment.verify', () => payments.verify(payment)),
    settle: (payment) => traced('payment.settle', () => payments.settle(payment)),
    lookUp: (payment) => traced('payment.look_up', () => payments.lookUp(payment)),
    health: () => payments.health(),
  };
}
