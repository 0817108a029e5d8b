// Serving under Deno.
import type { Clock } from '../../ports/clock.ts';
import { type Handler, inFlight, type Listening, type ListenOptions } from './listening.ts';

/** The part of Deno's own API that is used here; its types are not in this project. */
type DenoServe = {
  serve(
    options: ListenOptions & { signal: AbortSignal; onListen: (at: { port: number }) => void },
    handler: (
      request: Request,
      info: { remoteAddr: { transport: string; hostname?: string } },
    ) => Promise<Response>,
  ): {
    readonly addr: { readonly port: number };
    readonly finished: Promise<void>;
    shutdown(): Promise<void>;
  };
};

export async function serveDeno(handler: Handler, options: ListenOptions, clock: Clock): Promise<Listening> {
  const { Deno } = globalThis as unknown as { Deno: DenoServe };
  const flight = inFlight(handler, clock);
  const cut = new AbortController();
  const server = Deno.serve({ ...options, signal: cut.signal, onListen: () => undefined }, (request, info) =>
    flight.handler(request, { clientAddress: info.remoteAddr.hostname ?? 'unknown' }),
  );
  let stopped: Promise<void> | undefined;
  return {
    port: server.addr.port,
    stop(limitMs) {
      const cutAll = () => {
        cut.abort();
        return server.finished;
      };
      stopped ??= flight.drain(server.shutdown(), cutAll, limitMs);
      return stopped;
    },
  };
}
