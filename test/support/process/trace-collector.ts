// An OpenTelemetry collector on loopback: keeps every byte that comes (OTLP over HTTP, JSON), and answers as scripted.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { loopbackServer } from './loopback-server.ts';

export type CollectedSpan = {
  readonly traceId: string;
  readonly spanId: string;
  /** null for the first of a trace. */
  readonly parentId: string | null;
  readonly name: string;
  /** OTLP: 1 internal, 2 server, 3 client. */
  readonly kind: number;
  /** OTLP's status code 2. */
  readonly failed: boolean;
  readonly facts: Readonly<Record<string, unknown>>;
};

export type TraceCollector = {
  readonly url: string;
  /** `hang`: no answer at all. `refuse`: 400, which is not repeated. */
  behave(as: 'take' | 'hang' | 'refuse'): void;
  /** Of all requests that were answered with 200, in order of arrival. */
  spans(): CollectedSpan[];
  /** Request lines, headers and bodies of all requests. */
  bytes(): Buffer;
  /** Requests so far, answered or not. */
  calls(): number;
  close(): Promise<void>;
};

type Value = Readonly<Record<string, unknown>>;
type Json = {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
};
type Attribute = { readonly key: string; readonly value: Value };
type WireSpan = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly status?: { readonly code?: number };
  readonly attributes: readonly Attribute[];
  readonly links?: readonly unknown[];
  readonly events?: readonly unknown[];
};

export async function startTraceCollector(): Promise<TraceCollector> {
  let behaviour: Parameters<TraceCollector['behave']>[0] = 'take';
  const received: Buffer[] = [];
  const spans: CollectedSpan[] = [];
  let calls = 0;
  const server = await loopbackServer(async (request, response) => {
    calls += 1;
    const body = await bodyOf(request);
    // The sender gave up halfway.
    if (body === null) return;
    received.push(Buffer.from(`${request.url}\n${request.rawHeaders.join('\n')}\n`), body);
    if (behaviour === 'hang') return;
    if (behaviour === 'take') spans.push(...spansOf(JSON.parse(body.toString('utf8'))));
    answer(response, behaviour === 'take' ? 200 : 400);
  });
  return {
    url: server.url,
    behave: (as) => {
      behaviour = as;
    },
    spans: () => [...spans],
    bytes: () => Buffer.concat(received),
    calls: () => calls,
    close: server.down,
  };
}

async function bodyOf(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk);
  } catch {
    return null;
  }
  return Buffer.concat(chunks);
}

function answer(response: ServerResponse, status: number): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
}

function spansOf({ resourceSpans }: Json): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ traceId, spanId, parentSpanId, name, kind, status, attributes }) => ({
        traceId,
        spanId,
        parentId: parentSpanId === undefined || parentSpanId === '' ? null : parentSpanId,
        name,
        kind,
        failed: status?.code === 2,
        facts: factsOf([...resource.attributes, ...attributes]),
      })),
    ),
  );
}

const factsOf = (attributes: readonly Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
