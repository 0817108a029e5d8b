// Serving under Bun.
import type { Clock } from '../../ports/clock.ts';
import { type Handler, inFlight, type Listening, type ListenOptions } from './listening.ts';

/** Seconds without a byte: longer than the longest execution takes to answer. Bun's default of 10 would cut it. */
const IDLE_SECONDS = 120;

export async function serveBun(handler: Handler, options: ListenOptions, clock: Clock): Promise<Listening> {
  const flight = inFlight(handler, clock);
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
    stop() {
      stopped ??= flight.drain(server.stop(false), () => server.stop(true));
      return stopped;
    },
  };
}
