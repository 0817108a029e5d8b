// Serving under Bun.
import http from 'node:http';
import type { Clock } from '../../ports/clock.ts';
import { type Handler, inFlight, type Listening, type ListenOptions } from './listening.ts';

/** Seconds without a byte: longer than the longest execution takes to answer. Bun's default of 10 would cut it. */
const IDLE_SECONDS = 120;

/**
 * Of the request line and all headers together: payments travel in a header, and clients may send 16 kB of headers.
 * Beyond it Bun answers a bare 431; its default of 16 kB counts the request line too.
 */
const HEAD_BYTES = 32 * 1024;

export async function serveBun(handler: Handler, options: ListenOptions, clock: Clock): Promise<Listening> {
  const flight = inFlight(handler, clock);
  // Bun's only way to set it but a flag of its command line: for the whole process, by a setter that Node lacks.
  Object.assign(http, { maxHeaderSize: HEAD_BYTES });
  const server = Bun.serve({
    ...options,
    idleTimeout: IDLE_SECONDS,
    development: false,
    // `development: false` alone lets a second process listen on the same port beside this one (Bun 1.4.4).
    reusePort: false,
    // The routes count for themselves and answer with a body; Bun would close the connection with a bare status.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: (request, server) =>
      flight.handler(request, { clientAddress: server.requestIP(request)?.address ?? 'unknown' }),
  });
  const collecting = collectGarbage(flight.total, clock);
  let stopped: Promise<void> | undefined;
  return {
    port: server.port ?? options.port,
    stop(limitMs) {
      clearInterval(collecting);
      stopped ??= flight.drain(server.stop(false), () => server.stop(true), limitMs);
      return stopped;
    },
  };
}

const LOOK_MS = 1000;
/** Under load; after a load, within two seconds. */
const COLLECT_MS = 10_000;
const COLLECT_AFTER = 500;

/**
 * Collects garbage after many requests. The memory of closed TLS connections is freed with their objects, but
 * JavaScriptCore does not count it: without this, 40,000 executions add 600 MB before it runs a full collection.
 */
function collectGarbage(requests: () => number, clock: Pick<Clock, 'monotonic'>): NodeJS.Timeout {
  let seen = 0;
  let collected = { requests: 0, at: clock.monotonic() };
  const timer = setInterval(() => {
    const idle = requests() === seen;
    seen = requests();
    const now = clock.monotonic();
    if (seen - collected.requests < COLLECT_AFTER || (!idle && now - collected.at < COLLECT_MS)) return;
    collected = { requests: seen, at: now };
    Bun.gc(true);
  }, LOOK_MS);
  timer.unref();
  return timer;
}
