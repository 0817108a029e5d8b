// One JSON exchange with the facilitator over HTTP, without redirects.
import { parsedJson } from '#src/domain/canonical-json.ts';
import { collected } from '#src/lib/collected.ts';
import type { LoginHeaders } from './login.ts';

type ExchangeRequest = {
  readonly url: string;
  /** Absent: none. Called for each request that is sent. */
  readonly login?: LoginHeaders;
  /** Absent for a GET. */
  readonly body?: unknown;
  /** For everything from the DNS look-up to the last byte. */
  readonly timeoutMs: number;
};

export type ExchangeAnswer = {
  readonly status: number;
  /** Header `Date`, Unix ms; null if there is none. */
  readonly dateMs: number | null;
  /** undefined: the body is not JSON. */
  readonly json: unknown;
};

/**
 * `code`: for the log and for SettlementUnknown; contains no text of the facilitator. `why`: for the log, the runtime's code
 * of a failed connection, as in `ECONNREFUSED`; null if it has none (as under Deno).
 */
export type ExchangeFailure = {
  readonly code: 'timeout' | 'unreachable' | 'cut_off' | 'oversized';
  readonly why: string | null;
};

/** Rejects only if the request cannot be built, which is a defect of this program: nothing was sent then. */
type Exchange = (ask: ExchangeRequest) => Promise<ExchangeAnswer | ExchangeFailure>;

const ANSWER_MAX_BYTES = 64 * 1024;

type DenoHttp = { createHttpClient(options: { poolMaxIdlePerHost: number; http2: boolean }): object };
const { Deno } = globalThis as { readonly Deno?: DenoHttp };

/** Options of `fetch` for a new connection: Bun reads `keepalive`, Deno needs a client without a pool. */
const NEW_CONNECTION = {
  keepalive: false,
  ...(Deno === undefined ? {} : { client: Deno.createHttpClient({ poolMaxIdlePerHost: 0, http2: false }) }),
};

/**
 * Sends the request exactly once, on a new connection. For settlements: on a kept-alive connection that closes without an
 * answer, Deno's fetch silently repeats a POST, and the second answer ("nonce used") would mean that the buyer did not pay.
 */
export const singleExchange: Exchange = (ask) => exchange(ask, NEW_CONNECTION);

/** Sends the request on a kept-alive connection, and once more on a new one if that fails: for verify, which may be sent twice. */
export const pooledExchange: Exchange = async (ask) => {
  const begun = performance.now();
  const answer = await exchange(ask, null);
  if (!('code' in answer) || answer.code === 'oversized') return answer;
  const leftMs = ask.timeoutMs - (performance.now() - begun);
  return leftMs > 0 ? singleExchange({ ...ask, timeoutMs: leftMs }) : { code: 'timeout', why: null };
};

async function exchange(
  { url, login, body, timeoutMs }: ExchangeRequest,
  connection: RequestInit | null,
): Promise<ExchangeAnswer | ExchangeFailure> {
  const signal = AbortSignal.timeout(timeoutMs);
  const method = body === undefined ? 'GET' : 'POST';
  // Built outside of the try block, which is for failures of the network alone.
  const request = new Request(url, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    headers: {
      accept: 'application/json',
      'accept-encoding': 'identity',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(connection === null ? {} : { connection: 'close' }),
      ...(await login?.({ method, url })),
    },
    redirect: 'manual',
    signal,
  });
  let response: Response | null = null;
  let bytes: Uint8Array | null;
  try {
    response = await fetch(request, connection ?? {});
    bytes = await collected((response.body ?? []) as AsyncIterable<Uint8Array>, ANSWER_MAX_BYTES);
  } catch (error) {
    const code = signal.aborted ? 'timeout' : response === null ? 'unreachable' : 'cut_off';
    return { code, why: codeOf(error) };
  }
  if (bytes === null) return { code: 'oversized', why: null };
  const dateMs = Date.parse(response.headers.get('date') ?? '');
  return {
    status: response.status,
    dateMs: Number.isNaN(dateMs) ? null : dateMs,
    json: parsedJson(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)),
  };
}

/** Messages are not used: they may contain the URL. */
function codeOf(error: unknown): string | null {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return typeof code === 'string' && /^[A-Za-z0-9_]{1,60}$/.test(code) ? code : null;
}
