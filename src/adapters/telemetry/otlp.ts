// Traces to an OpenTelemetry collector: OTLP over HTTP, as JSON. Nothing of a caller's request makes or joins a trace,
// and nothing waits for the collector: what it does not take in time is dropped.
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Clock } from '#src/ports/clock.ts';
import type { SpanKind as Kind, OpenSpan, Tracer } from '#src/ports/telemetry.ts';

type OtlpOptions = {
  /** Of the collector, without `/v1/traces`. */
  readonly endpoint: string;
  readonly service: { readonly name: string; readonly version: string; readonly instance: string };
  readonly clock: Pick<Clock, 'sleep'>;
  /** Called after each batch. null: the collector accepted it; otherwise its spans are lost. */
  readonly exported: (failure: { readonly cause: unknown } | null) => void;
};

/** Ended spans that wait; one more is dropped. */
const WAITING_MAX = 4096;
const BATCH_MAX = 512;
const BATCH_MS = 2000;
/** For one batch, its repeats included. */
const EXPORT_MS = 5000;
const CLOSE_MS = 2000;

const KINDS: Record<Kind, SpanKind> = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
};

/** Nothing of the library's global state is set: what runs beside it in the process is not traced by it. */
export function otlpTracer({ endpoint, service, clock, exported }: OtlpOptions): Tracer {
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.replace(/\/+$/, '')}/v1/traces`,
    timeoutMillis: EXPORT_MS,
    // All that waits goes out at once when the process ends, beside a batch that hangs.
    concurrencyLimit: WAITING_MAX / BATCH_MAX + 2,
  });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': service.name,
      'service.version': service.version,
      'service.instance.id': service.instance,
    }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: reporting(exporter, exported),
        maxQueueSize: WAITING_MAX,
        maxExportBatchSize: BATCH_MAX,
        scheduledDelayMillis: BATCH_MS,
        exportTimeoutMillis: EXPORT_MS + 1000,
      }),
    ],
  });
  const tracer = provider.getTracer(service.name, service.version);
  const contexts = new AsyncLocalStorageContextManager();
  return {
    within(name, kind, work) {
      const parent = contexts.active();
      const span = tracer.startSpan(name, { kind: KINDS[kind] }, parent);
      const open: OpenSpan = {
        rename: (to) => void span.updateName(to),
        setAttributes(facts) {
          for (const [fact, value] of Object.entries(facts)) {
            if (value !== null) span.setAttribute(fact, value);
          }
        },
        // An error's message may contain anything: it is only logged, masked.
        fail: () => void span.setStatus({ code: SpanStatusCode.ERROR }),
      };
      return contexts.with(trace.setSpan(parent, span), async () => {
        try {
          return await work(open);
        } catch (error) {
          open.fail();
          throw error;
        } finally {
          span.end();
        }
      });
    },
    traceId: () => trace.getSpanContext(contexts.active())?.traceId ?? null,
    async close() {
      const closed = provider.shutdown().catch(() => undefined);
      await Promise.race([closed, clock.sleep(CLOSE_MS)]);
    },
  };
}

function reporting(exporter: SpanExporter, exported: OtlpOptions['exported']): SpanExporter {
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        // 0: exported. The library's enumeration is in a package that is not a dependency of ours. The error itself may
        // contain the whole answer, so only its message is logged.
        exported(result.code === 0 ? null : { cause: result.error?.message });
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}
