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
  let stopped: Promise<void> | undefined;
  return {
    port: server.port ?? options.port,
    stop(limitMs) {
      stopped ??= flight.drain(server.stop(false), () => server.stop(true), limitMs);
      return stopped;
    },
  };
}
