// What both runtimes' servers give and how they stop: in-flight answers first, then the sockets.
import type { Clock } from '../../ports/clock.ts';

export type Handler = (request: Request, peer: { readonly clientAddress: string }) => Promise<Response>;

/** `port` 0: any free one. */
export type ListenOptions = { readonly hostname: string; readonly port: number };

export type Listening = {
  readonly port: number;
  /** Accepts nothing more, lets what is in flight be answered (at most 120 s), then resolves. Again: the same promise. */
  stop(limitMs?: number): Promise<void>;
};

const DRAIN_MS = 120_000;
/** For the last bytes to leave, and for idle kept-alive connections, which no one waits for. */
const FLUSH_MS = 500;

/** Counts answers that are not ready yet; while stopping, adds `connection: close` to responses. */
export function inFlight(handler: Handler, clock: Clock) {
  let total = 0;
  let count = 0;
  let stopping = false;
  const idle = new AbortController();
  const settle = () => {
    if (stopping && count === 0) idle.abort();
  };
  return {
    /** Requests so far. */
    total: () => total,
    handler: (async (request, peer) => {
      total += 1;
      count += 1;
      try {
        const response = await handler(request, peer);
        if (stopping) response.headers.set('connection', 'close');
        return response;
      } finally {
        count -= 1;
        settle();
      }
    }) satisfies Handler,
    /** `closed` resolves when the server has closed normally; what is left after the waits is cut by `cut`. */
    async drain(
      closed: Promise<unknown>,
      cut: () => Promise<unknown>,
      limitMs: number = DRAIN_MS,
    ): Promise<void> {
      const ended = closed.then(
        () => true,
        () => false,
      );
      stopping = true;
      settle();
      await clock.sleep(limitMs, idle.signal);
      if (await Promise.race([ended, clock.sleep(FLUSH_MS)])) return;
      // Deno waits for the handler of a connection that it has cut.
      await Promise.race([cut(), clock.sleep(FLUSH_MS)]);
    },
  };
}
