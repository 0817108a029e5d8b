// One JSON exchange with the facilitator over HTTP/1.1. What an answer means, others judge.
//
// Each on a connection of its own and without redirects, hence not by fetch: where a kept connection closes without an
// answer, Deno's fetch silently sends the POST again. A settlement must be asked for once a call: the second answer
// ("nonce used") would be the echo of the first, and a buyer who paid would be told that it did not.
import http from 'node:http';
import https from 'node:https';

export type ExchangeAsk = {
  readonly url: string;
  /** Absent: a GET. */
  readonly body?: unknown;
  /** For all of it, from the look-up of the name to the last byte. */
  readonly timeoutMs: number;
};

export type ExchangeAnswer = {
  readonly status: number;
  /** Header `Date`, Unix ms; null where there is none. */
  readonly dateMs: number | null;
  /** undefined: the body is no JSON. */
  readonly json: unknown;
};

/** `code`: a word for the log and for SettlementUnknown; no text of the other side. */
export type ExchangeFailure = { readonly code: 'timeout' | 'unreachable' | 'cut_off' | 'oversized' };

/** Never rejects. */
export type Exchange = (ask: ExchangeAsk) => Promise<ExchangeAnswer | ExchangeFailure>;

const ANSWER_MAX_BYTES = 64 * 1024;

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
    // stays: a destroyed request may still fail, and nobody else listens
    request.on('error', () => end({ code: answered ? 'cut_off' : 'unreachable' }));
    request.on('response', (response) => {
      answered = true;
      readAnswer(response, end);
    });
    request.end(text ?? undefined);
  });

function openRequest(url: string, body: string | null): http.ClientRequest {
  const target = new URL(url);
  const send = target.protocol === 'https:' ? https.request : http.request;
  const headers: Record<string, string | number> = {
    accept: 'application/json',
    'accept-encoding': 'identity',
  };
  if (body !== null) {
    headers['content-type'] = 'application/json';
    headers['content-length'] = Buffer.byteLength(body);
  }
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
  // also where the connection ends before the answer does: then there is no 'end'
  response.on('error', () => end({ code: 'cut_off' }));
  response.on('end', () => {
    const dateMs = Date.parse(response.headers.date ?? '');
    end({
      status: response.statusCode ?? 0,
      dateMs: Number.isNaN(dateMs) ? null : dateMs,
      json: parsed(Buffer.concat(chunks).toString('utf8')),
    });
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
