// One JSON exchange with the facilitator over HTTP/1.1, without redirects.
import http from 'node:http';
import https from 'node:https';
import { parsedJson } from '#src/domain/canonical-json.ts';

type ExchangeRequest = {
  readonly url: string;
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

/** `code`: for the log and for SettlementUnknown; contains no text of the facilitator. */
type ExchangeFailure = { readonly code: 'timeout' | 'unreachable' | 'cut_off' | 'oversized' };

/** Never rejects. */
type Exchange = (ask: ExchangeRequest) => Promise<ExchangeAnswer | ExchangeFailure>;

const ANSWER_MAX_BYTES = 64 * 1024;

/**
 * Sends the request exactly once, on a new connection. For settlements: Deno's fetch silently repeats a POST if a kept-alive
 * connection closes without an answer, and the second answer ("nonce used") would mean that the buyer did not pay.
 */
export const httpExchange: Exchange = ({ url, body, timeoutMs }) =>
  new Promise((resolve) => {
    const text = body === undefined ? null : JSON.stringify(body);
    const request = openRequest(url, text);
    const timer = setTimeout(() => end({ code: 'timeout' }), timeoutMs);
    let answered = false;
    function end(outcome: ExchangeAnswer | ExchangeFailure): void {
      clearTimeout(timer);
      request.destroy();
      resolve(outcome);
    }
    // Never removed: a destroyed request may still emit an error, which would be uncaught.
    request.on('error', () => end({ code: answered ? 'cut_off' : 'unreachable' }));
    request.on('response', (response) => {
      answered = true;
      readAnswer(response, end);
    });
    request.end(text ?? undefined);
  });

/**
 * Sends the request on a kept-alive connection, which takes a seventh of the CPU time, and once more on a new connection if
 * that fails: for verify, which may be sent twice.
 */
export const pooledExchange: Exchange = async (ask) => {
  const { url, body, timeoutMs } = ask;
  const begun = performance.now();
  try {
    const response = await fetch(url, {
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      headers: headersOf(body !== undefined),
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      size += chunk.length;
      if (size > ANSWER_MAX_BYTES) return { code: 'oversized' };
      chunks.push(chunk);
    }
    return answerOf(response.status, response.headers.get('date'), chunks);
  } catch {
    const leftMs = timeoutMs - (performance.now() - begun);
    return leftMs > 0 ? httpExchange({ ...ask, timeoutMs: leftMs }) : { code: 'timeout' };
  }
};

const headersOf = (hasBody: boolean): Record<string, string> => ({
  accept: 'application/json',
  'accept-encoding': 'identity',
  ...(hasBody ? { 'content-type': 'application/json' } : {}),
});

function openRequest(url: string, body: string | null): http.ClientRequest {
  const target = new URL(url);
  const send = target.protocol === 'https:' ? https.request : http.request;
  const headers = headersOf(body !== null);
  if (body !== null) headers['content-length'] = String(Buffer.byteLength(body));
  return send(target, { method: body === null ? 'GET' : 'POST', headers, agent: false });
}

function readAnswer(
  response: http.IncomingMessage,
  end: (outcome: ExchangeAnswer | ExchangeFailure) => void,
): void {
  const chunks: Uint8Array[] = [];
  let size = 0;
  response.on('data', (chunk: Uint8Array) => {
    size += chunk.length;
    if (size > ANSWER_MAX_BYTES) end({ code: 'oversized' });
    else chunks.push(chunk);
  });
  // If the connection ends before the response is complete, there is no 'end'.
  response.on('error', () => end({ code: 'cut_off' }));
  response.on('end', () => end(answerOf(response.statusCode ?? 0, response.headers.date ?? null, chunks)));
}

function answerOf(status: number, date: string | null, chunks: readonly Uint8Array[]): ExchangeAnswer {
  const dateMs = Date.parse(date ?? '');
  return {
    status,
    dateMs: Number.isNaN(dateMs) ? null : dateMs,
    json: parsedJson(Buffer.concat(chunks).toString('utf8')),
  };
}
