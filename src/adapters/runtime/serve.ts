// The HTTP server under Bun and Deno, and how it stops: in-flight answers first, then the sockets.

import http from 'node:http';
import { OperatorError } from '#src/lib/operator-error.ts';
import { Cancel } from '#src/lib/time.ts';
import type { Clock } from '../../ports/clock.ts';

export type Handler = (request: Request, peer: { readonly clientAddress: string }) => Promise<Response>;

/** `port` 0: any free one. */
export type ListenOptions = { readonly hostname: string; readonly port: number };

export type Listening = {
  readonly port: number;
  /** Accepts nothing more, lets what is in flight be answered (at most 120 s), then resolves. Again: the same promise. */
  stop(limitMs?: number): Promise<void>;
};

export class CannotListen extends OperatorError {
  constructor({ hostname, port }: ListenOptions, cause: unknown) {
    // Bun has one code for all causes.
    super(
      `cannot listen at ${hostname}:${port}: another program listens there, the address is not of this machine, or this user may not use the port; relay doctor says which`,
      { cause },
    );
  }
}

const DRAIN_MS = 120_000;
/** For the last bytes to leave, and for idle kept-alive connections, which no one waits for. */
const FLUSH_MS = 500;

/** While stopping, adds `connection: close` to responses. Rejects with `CannotListen`. */
export async function serve(handler: Handler, options: ListenOptions, clock: Clock): Promise<Listening> {
  let inFlight = 0;
  let stopped: Promise<void> | undefined;
  const idle = new AbortController();
  const abortIfIdle = () => {
    if (stopped !== undefined && inFlight === 0) idle.abort();
  };
  const server = open(
    async (request, peer) => {
      inFlight += 1;
      try {
        const response = await handler(request, peer);
        if (stopped !== undefined) response.headers.set('connection', 'close');
        return response;
      } finally {
        inFlight -= 1;
        abortIfIdle();
      }
    },
    options,
    clock,
  );

  async function drain(limitMs: number): Promise<void> {
    const ended = server.close().then(
      () => true,
      () => false,
    );
    await clock.sleep(limitMs, idle.signal);
    if (await Promise.race([ended, clock.sleep(FLUSH_MS)])) return;
    // Deno waits for the handler of a connection that it has cut.
    await Promise.race([server.cut(), clock.sleep(FLUSH_MS)]);
  }

  return {
    port: server.port,
    stop(limitMs = DRAIN_MS) {
      stopped ??= drain(limitMs);
      abortIfIdle();
      return stopped;
    },
  };
}

/** `close`: accepts nothing more; resolves when all connections have ended. `cut`: ends them. */
type Server = { readonly port: number; close(): Promise<unknown>; cut(): Promise<unknown> };

function open(handler: Handler, options: ListenOptions, clock: Clock): Server {
  try {
    return 'Bun' in globalThis ? openBun(handler, options, clock) : openDeno(handler, options);
  } catch (cause) {
    throw new CannotListen(options, cause);
  }
}

/** Seconds without a byte: longer than the longest execution takes to answer. Bun's default of 10 would cut it. */
const IDLE_SECONDS = 120;

/**
 * Of the request line and all headers together: payments travel in a header, and clients may send 16 kB of headers.
 * Beyond it Bun answers a bare 431; its default of 16 kB counts the request line too.
 */
const HEAD_BYTES = 32 * 1024;

function openBun(handler: Handler, options: ListenOptions, clock: Clock): Server {
  const garbage = collectGarbage(clock);
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
    fetch(request, server) {
      garbage.counted();
      return handler(request, { clientAddress: server.requestIP(request)?.address ?? 'unknown' });
    },
  });
  return {
    port: server.port ?? options.port,
    close() {
      garbage.stop();
      return server.stop(false);
    },
    cut: () => server.stop(true),
  };
}

const LOOK_MS = 1000;
/** Under load; after a load, within two seconds. */
const COLLECT_MS = 10_000;
const COLLECT_AFTER = 500;

/**
 * Collects garbage after many requests. The memory of closed TLS connections is freed with their objects, but
 * JavaScriptCore does not count it: without this, 40,000 executions add 600 MB before it runs a full collection. Between
 * requests nothing wakes the process.
 */
function collectGarbage(clock: Pick<Clock, 'monotonic' | 'sleep'>) {
  /** Since the last collection. */
  let requests = 0;
  let collectedAt = clock.monotonic();
  const stopped = new Cancel();

  async function collectLater(): Promise<void> {
    for (let isDue = false; !isDue; ) {
      const seen = requests;
      await clock.sleep(LOOK_MS, stopped);
      if (stopped.aborted) return;
      isDue = requests === seen || clock.monotonic() - collectedAt >= COLLECT_MS;
    }
    requests = 0;
    collectedAt = clock.monotonic();
    Bun.gc(true);
  }

  return {
    counted(): void {
      requests += 1;
      if (requests === COLLECT_AFTER) void collectLater();
    },
    stop: () => stopped.abort(),
  };
}

/** The part of Deno's own API that is used here; its types are not in this project. */
type DenoServe = {
  serve(
    options: ListenOptions & { signal: AbortSignal; onListen: (at: { port: number }) => void },
    handler: (request: Request, info: { remoteAddr: { hostname?: string } }) => Promise<Response>,
  ): {
    readonly addr: { readonly port: number };
    readonly finished: Promise<void>;
    shutdown(): Promise<void>;
  };
};

function openDeno(handler: Handler, options: ListenOptions): Server {
  const { Deno } = globalThis as unknown as { Deno: DenoServe };
  const cut = new AbortController();
  const server = Deno.serve({ ...options, signal: cut.signal, onListen: () => undefined }, (request, info) =>
    handler(request, { clientAddress: info.remoteAddr.hostname ?? 'unknown' }),
  );
  return {
    port: server.addr.port,
    close: () => server.shutdown(),
    cut() {
      // Deno 2 throws in the listener if every connection has ended while a handler runs: uncaught, that ends the process.
      const ignored = (event: Event) => event.preventDefault();
      globalThis.addEventListener('error', ignored);
      cut.abort();
      globalThis.removeEventListener('error', ignored);
      return server.finished;
    },
  };
}
